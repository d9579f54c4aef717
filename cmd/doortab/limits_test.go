package main

import (
	"net/http"
	"testing"
)

// The settings reach the API, and a proxy is believed.
func TestLimitsAsSet(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 0)
	one := in.serve("--limit-address=1/h:2", "--trusted-proxy=127.0.0.0/8,::1/128")
	two := in.serve("--limit-token=1/h:3")
	open := func(client string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, one.http+"/v1/door-sessions", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+in.client.token)
		request.Header.Set("X-Forwarded-For", client)
		request.Header.Set("Idempotency-Key", "key")
		answer, err := in.client.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	for n, want := range []int{400, 400, 429} {
		if got := open("203.0.113.5"); got != want {
			t.Errorf("call %d of a client: %d, want %d", n+1, got, want)
		}
	}
	if got := open("203.0.113.6"); got != 400 {
		t.Errorf("another client: %d", got)
	}
	for n, want := range []int{200, 200, 200, 429} {
		if got := in.client.status(two.http + "/v1/products"); got != want {
			t.Errorf("call %d with a token: %d, want %d", n+1, got, want)
		}
	}
}
