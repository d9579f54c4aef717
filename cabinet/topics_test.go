package cabinet_test

import (
	"testing"

	"doortab/cabinet"
)

func TestParseTopic(t *testing.T) {
	t.Parallel()
	for topic, leaf := range map[string]string{
		cabinet.DoorClosedTopic(1001): "door-closed", cabinet.DoorTopic(1001): "door", cabinet.StatusTopic(1001): "status",
		cabinet.TelemetryTopic(1001): "telemetry", cabinet.ReceiptsTopic(1001): "receipts", cabinet.UnlockTopic(1001): "unlock",
	} {
		id, got, ok := cabinet.ParseTopic(topic)
		if !ok || id != 1001 || got != leaf || topic != "v1/cabinets/1001/"+leaf {
			t.Errorf("%s: %d %q %v", topic, id, got, ok)
		}
	}
	if id, _, ok := cabinet.ParseTopic("v1/cabinets/9007199254740991/status"); !ok || id != cabinet.MaxID {
		t.Errorf("the largest id: %d %v", id, ok)
	}
	for _, topic := range []string{
		"", "v1/cabinets/", "v1/cabinets/1001", "v1/cabinets/1001/", "v1/cabinets//status", "v1/cabinets/1001/status/",
		"v1/cabinets/1001/status/x", "v1/cabinets/1001/Status", "v1/cabinets/1001/other", "/v1/cabinets/1001/status",
		"v2/cabinets/1001/status", "v1/cabinets/01001/status", "v1/cabinets/+1001/status", "v1/cabinets/-1/status",
		"v1/cabinets/0/status", "v1/cabinets/9007199254740992/status", "v1/cabinets/99999999999999999999/status",
		"v1/cabinets/1_001/status", "v1/cabinets/0x1/status", "v1/cabinets/ 1/status", "v1/cabinets/١/status",
		"v1/cabinets/+/status", "v1/cabinets/1001/+", "v1/cabinets/1001/#", "v1/cabinets/#",
		"$share/doortab/v1/cabinets/1001/receipts",
	} {
		if id, leaf, ok := cabinet.ParseTopic(topic); ok || id != 0 || leaf != "" {
			t.Errorf("%q was taken: %d %q", topic, id, leaf)
		}
	}
}

func TestACabinetKeepsToItsOwnTopics(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ publish, subscribe bool }{
		"v1/cabinets/1001/door-closed":             {publish: true},
		"v1/cabinets/1001/door":                    {publish: true},
		"v1/cabinets/1001/status":                  {publish: true},
		"v1/cabinets/1001/telemetry":               {publish: true},
		"v1/cabinets/1001/receipts":                {subscribe: true},
		"v1/cabinets/1001/unlock":                  {subscribe: true},
		"v1/cabinets/1002/door-closed":             {},
		"v1/cabinets/1002/receipts":                {},
		"v1/cabinets/01001/receipts":               {},
		"v1/cabinets/+/receipts":                   {},
		"v1/cabinets/1001/+":                       {},
		"v1/cabinets/1001/#":                       {},
		"#":                                        {},
		"$share/x/v1/cabinets/1001/receipts":       {},
		"$share/doortab/v1/cabinets/+/door-closed": {},
		"$SYS/broker/uptime":                       {},
	}
	for topic, want := range cases {
		if got := cabinet.MayPublish(1001, topic); got != want.publish {
			t.Errorf("publish on %s: %v", topic, got)
		}
		if got := cabinet.MaySubscribe(1001, topic); got != want.subscribe {
			t.Errorf("subscribe to %s: %v", topic, got)
		}
	}
}

func TestDecodeStatus(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		payload string
		want    cabinet.Status
		wrong   bool
	}{
		"online":              {`{"online":true,"bootId":"7f3a"}`, cabinet.Status{Online: true, BootID: "7f3a"}, false},
		"last will":           {`{"online":false}`, cabinet.Status{}, false},
		"more fields":         {`{"online":true,"rssi":-60}`, cabinet.Status{Online: true}, false},
		"bootId unusable":     {`{"online":true,"bootId":7}`, cabinet.Status{Online: true}, false},
		"bootId null":         {`{"online":true,"bootId":null}`, cabinet.Status{Online: true}, false},
		"retained is cleared": {``, cabinet.Status{}, true},
		"online missing":      {`{"bootId":"7f3a"}`, cabinet.Status{}, true},
		"online null":         {`{"online":null}`, cabinet.Status{}, true},
		"online a text":       {`{"online":"true"}`, cabinet.Status{}, true},
		"online twice":        {`{"online":true,"online":false}`, cabinet.Status{}, true},
		"not an object":       {`true`, cabinet.Status{}, true},
		"two values":          {`{"online":true}{}`, cabinet.Status{}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cabinet.DecodeStatus([]byte(c.payload))
			if (err != nil) != c.wrong || got != c.want {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
	if _, err := cabinet.DecodeStatus(make([]byte, cabinet.MaxPayload+1)); err == nil {
		t.Error("a status over the limit was read")
	}
}
