package admin

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"testing"
	"time"
)

func TestADeletedTokenStops(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	r := h.expect(http.StatusCreated, h.send(Admin, "POST", "/v1/tokens", `{"name":"Büro","role":"operator"}`))
	made := r.json(t)
	if r.header.Get("Cache-Control") != "no-store" || made["role"] != "operator" || made["name"] != "Büro" || len(made["token"].(string)) != 64 {
		t.Errorf("made %v", made)
	}
	h.tokens["mine"] = made["token"].(string)
	h.expect(200, h.send("mine", "GET", "/v1/dead-letters", ""))
	listed := h.expect(200, h.send(Admin, "GET", "/v1/tokens?limit=1", "")).json(t)["items"].([]any)[0].(map[string]any)
	if listed["id"] != made["id"] || listed["token"] != nil {
		t.Errorf("listed %v", listed)
	}
	var stored []byte
	err := h.db.Read(t.Context()).Raw("SELECT token_hash FROM api_tokens WHERE token_id = ?", made["id"]).Row().Scan(&stored)
	if hash := sha256.Sum256([]byte(h.tokens["mine"])); err != nil || !bytes.Equal(stored, hash[:]) {
		t.Errorf("stored %x, %v", stored, err)
	}
	// Deleted behind this process's back, it works for the length of the cache at most.
	h.exec("DELETE FROM api_tokens WHERE token_id = ?", made["id"])
	begun := time.Now()
	h.waitFor("the token is refused", func() bool { return h.send("mine", "GET", "/v1/dead-letters", "").status == 401 })
	if took := time.Since(begun); took > tokenFor+2*time.Second {
		t.Errorf("it took %s", took)
	}
	made = h.expect(http.StatusCreated, h.send(Admin, "POST", "/v1/tokens", `{"name":"b","role":"viewer"}`)).json(t)
	h.tokens["mine"] = made["token"].(string)
	h.expect(200, h.send("mine", "GET", "/v1/products", ""))
	h.expect(204, h.send(Admin, "DELETE", "/v1/tokens/"+made["id"].(string), ""))
	h.expect(401, h.send("mine", "GET", "/v1/products", ""))
	for _, body := range []string{
		`{"name":"a","role":"owner"}`, `{"name":"","role":"viewer"}`, `{"name":"a"}`, `{"name":"a","role":"viewer","token":"x"}`,
	} {
		h.expect(422, h.send(Admin, "POST", "/v1/tokens", body))
	}
}
