package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestCabinetSend(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 1)
	s := in.serve()
	secret, device := in.secret(firstDevice), fmt.Sprint(firstDevice)
	for _, c := range []struct {
		name, secret, event string
		status              int
		want                string
	}{
		{"a sale", secret, `{"userId":42,"items":[{"productId":1,"quantity":2}]}`, 0, `"outcome":"settled"`},
		{"an id of one's own", secret, `{"closeEventId":"mine","items":[]}`, 0, `"closeEventId":"mine","deviceId":` + device},
		{"the same again", secret, `{"closeEventId":"mine","items":[{"productId":1,"quantity":1}]}`, 0, `"outcome":"conflict"`},
		{"no evidence", secret, `{"userId":42}`, 0, "`doortab dead-letters list` says why"},
		{"not JSON", secret, `{`, 1, "not a JSON object"},
		{"no id", secret, `{"closeEventId":7,"items":[]}`, 1, "not a string"},
		{"another's secret", "wrong", `{"items":[]}`, 1, "check the address and the secret"},
	} {
		status, stdout, stderr := command(t, "cabinet", "send", device, c.event, "--mqtt="+s.mqtt, "--secret="+c.secret, "--wait=3s")
		if status != c.status || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: status %d, %q %q; want %d and %s", c.name, status, stdout, stderr, c.status, c.want)
		}
	}
}
