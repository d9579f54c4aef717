package cabinet_test

import (
	stdjson "encoding/json"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"doortab/cabinet"
)

func TestReceiptHasEveryMember(t *testing.T) {
	t.Parallel()
	settledAt := time.Date(2026, 11, 30, 18, 0, 21, 500e6, time.FixedZone("CST", 8*3600))
	cases := map[string]struct {
		receipt cabinet.Receipt
		want    string
	}{
		"settled": {
			cabinet.Receipt{
				CloseEventID: "e1", DeviceID: 1001, Outcome: cabinet.Settled, OrderID: "7261559013842321408", Currency: "CNY", TotalMinor: 1000,
				Lines:   []cabinet.Line{{ProductID: 7, Quantity: 2, UnitPriceMinor: 500, AmountMinor: 1000}},
				Reasons: []cabinet.Reason{cabinet.ReasonShortfall, cabinet.ReasonClockSkew}, SettledAt: settledAt,
			},
			`{"closeEventId":"e1","deviceId":1001,"outcome":"settled","duplicate":false,"orderId":"7261559013842321408",` +
				`"currency":"CNY","totalMinor":1000,"lines":[{"productId":7,"quantity":2,"unitPriceMinor":500,"amountMinor":1000}],` +
				`"reasons":["shortfall","clock_skew"],"settledAt":"2026-11-30T10:00:21.500Z"}`,
		},
		"nothing to say": {
			cabinet.Receipt{CloseEventID: "e1", DeviceID: 1001, Outcome: cabinet.Rejected, Duplicate: true},
			`{"closeEventId":"e1","deviceId":1001,"outcome":"rejected","duplicate":true,"orderId":null,"currency":"",` +
				`"totalMinor":0,"lines":[],"reasons":[],"settledAt":null}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload, err := json.Marshal(c.receipt)
			if err != nil || string(payload) != c.want {
				t.Fatalf("error %v\n got %s\nwant %s", err, payload, c.want)
			}
			var back, stdBack cabinet.Receipt
			if err := json.Unmarshal(payload, &back); err != nil {
				t.Fatal(err)
			}
			if err := stdjson.Unmarshal(payload, &stdBack); err != nil {
				t.Fatal(err)
			}
			for _, got := range []cabinet.Receipt{back, stdBack} {
				if diff := cmp.Diff(c.receipt, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestReasonsThatOnlyInform(t *testing.T) {
	t.Parallel()
	cases := map[cabinet.Reason]bool{
		cabinet.ReasonShortfall: true, cabinet.ReasonClockSkew: true, cabinet.ReasonMisplacedReturn: true, cabinet.ReasonReservedTaken: true,
		cabinet.ReasonUnattributed: false, cabinet.ReasonUnknownProduct: false, cabinet.ReasonInvalidQuantity: false,
		cabinet.ReasonUnexplainedWeight: false, cabinet.ReasonForeignObject: false, cabinet.ReasonEvidenceDisagrees: false,
		cabinet.ReasonUnknownEPC: false, cabinet.ReasonEPCNotInCabinet: false, cabinet.ReasonLowConfidence: false,
		cabinet.ReasonConflict: false, cabinet.ReasonSessionMismatch: false, cabinet.ReasonUnknownLane: false,
		cabinet.ReasonEPCAlreadySold: false, cabinet.ReasonEPCElsewhere: false,
	}
	for reason, want := range cases {
		if reason.Informs() != want {
			t.Errorf("%s: informs %v, want %v", reason, !want, want)
		}
	}
}

func TestSkewed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		closedAt time.Time
		want     bool
	}{
		"now":                {now, false},
		"10 minutes ahead":   {now.Add(10 * time.Minute), false},
		"a little more":      {now.Add(10*time.Minute + time.Millisecond), true},
		"30 days behind":     {now.Add(-30 * 24 * time.Hour), false},
		"a little more back": {now.Add(-30*24*time.Hour - time.Millisecond), true},
		"1970":               {time.Unix(0, 0), true},
		"2099":               {time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC), true},
		"year 1":             {time.Time{}, true},
	}
	for name, c := range cases {
		if cabinet.Skewed(c.closedAt, now) != c.want {
			t.Errorf("%s: skewed %v, want %v", name, !c.want, c.want)
		}
	}
}
