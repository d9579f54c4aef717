package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

const restocksOf7 = "/v1/cabinets/7/restocks"

// newShop is a harness with cabinet 7 and product 7.
func newShop(t testing.TB) *harness {
	t.Helper()
	h := newHarness(t)
	h.cabinet(7)
	h.product(cola)
	return h
}

func (h *harness) restock(key, body string) reply {
	return h.send(Restocker, "POST", restocksOf7, body, header{keyHeader: key})
}

// stock is the book stock of product 7 in cabinet 7.
func (h *harness) stock() any {
	h.t.Helper()
	items, _ := h.walk("/v1/cabinets/7/stock?")
	if len(items) == 0 {
		return nil
	}
	return items[0]["stock"]
}

func TestARestockAddsUnits(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	h.product(`{"productId":3,"sku":"TEA","name":"Tea","priceMinor":1}`)
	r := h.expect(http.StatusCreated, h.restock("a", `{"lines":[{"productId":7,"quantity":12},{"productId":3,"quantity":100000}],"note":"早"}`))
	movements := r.json(t)["movements"].([]any)
	first, second := movements[0].(map[string]any), movements[1].(map[string]any)
	if first["productId"] != 3.0 || second["productId"] != 7.0 || second["kind"] != "restock" || second["delta"] != 12.0 ||
		second["balance"] != 12.0 || second["version"] != 1.0 || second["ref"] == "" {
		t.Errorf("movements %v", movements)
	}
	at, _ := second["createdAt"].(string)
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", at); err != nil {
		t.Errorf("createdAt %q", at)
	}
	if r.header.Get(replayedHeader) != "" {
		t.Error("the first answer says that it is a repeat")
	}
	h.expect(http.StatusCreated, h.restock("b", `{"lines":[{"productId":7,"quantity":1}]}`))
	items, _ := h.walk("/v1/cabinets/7/stock?")
	if len(items) != 2 || items[1]["stock"] != 13.0 || items[1]["version"] != 2.0 || items[1]["parLevel"] != 0.0 {
		t.Errorf("stock %v", items)
	}
	ledger, _ := h.walk("/v1/cabinets/7/movements?productId=7")
	if len(ledger) != 2 || ledger[0]["balance"] != 13.0 || ledger[1]["balance"] != 12.0 {
		t.Errorf("ledger %v", ledger)
	}
}

func TestARestockOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	good := `{"lines":[{"productId":7,"quantity":1}]}`
	for name, c := range map[string]struct {
		path, body, key string
		status          int
		kind            string
	}{
		"no lines":            {restocksOf7, `{"lines":[]}`, "k", 422, "invalid"},
		"null lines":          {restocksOf7, `{"lines":null}`, "k", 422, "invalid"},
		"missing lines":       {restocksOf7, `{}`, "k", 422, "invalid"},
		"quantity 0":          {restocksOf7, `{"lines":[{"productId":7,"quantity":0}]}`, "k", 422, "invalid"},
		"quantity 100001":     {restocksOf7, `{"lines":[{"productId":7,"quantity":100001}]}`, "k", 422, "invalid"},
		"quantity -1":         {restocksOf7, `{"lines":[{"productId":7,"quantity":-1}]}`, "k", 422, "invalid"},
		"quantity 1.5":        {restocksOf7, `{"lines":[{"productId":7,"quantity":1.5}]}`, "k", 422, "invalid"},
		"a product twice":     {restocksOf7, `{"lines":[{"productId":7,"quantity":1},{"productId":7,"quantity":1}]}`, "k", 422, "invalid"},
		"unknown product":     {restocksOf7, `{"lines":[{"productId":9,"quantity":1}]}`, "k", 422, "unknown-product"},
		"unknown field":       {restocksOf7, `{"lines":[{"productId":7,"quantity":1,"x":1}]}`, "k", 422, "invalid"},
		"long note":           {restocksOf7, `{"lines":[{"productId":7,"quantity":1}],"note":"` + strings.Repeat("a", 501) + `"}`, "k", 422, "invalid"},
		"unknown cabinet":     {"/v1/cabinets/8/restocks", good, "k", 404, "not-found"},
		"cabinet 0":           {"/v1/cabinets/0/restocks", good, "k", 422, "invalid"},
		"no key":              {restocksOf7, good, "", 400, "idempotency-key"},
		"no key and no JSON":  {restocksOf7, "{", "", 400, "idempotency-key"},
		"key with a space":    {restocksOf7, good, "a b", 400, "idempotency-key"},
		"key beyond ASCII":    {restocksOf7, good, "é", 400, "idempotency-key"},
		"key of 256":          {restocksOf7, good, strings.Repeat("k", 256), 400, "idempotency-key"},
		"body of 1 MiB":       {restocksOf7, good[:len(good)-1] + `,"note":"` + strings.Repeat("a", 1<<20) + `"}`, "k", 413, "too-large"},
		"body of white space": {restocksOf7, strings.Repeat(" ", 1<<20) + good, "k", 413, "too-large"},
	} {
		r := h.send(Restocker, "POST", c.path, c.body, header{keyHeader: c.key})
		if r.status != c.status {
			t.Errorf("%s: status %d, want %d: %.300s", name, r.status, c.status, r.body)
			continue
		}
		h.problem(r, c.kind)
	}
	if stock := h.stock(); stock != nil {
		t.Errorf("refused restocks left stock %v", stock)
	}
	// A refusal that isn't kept leaves its key free.
	h.expect(http.StatusCreated, h.restock("k", good))
	h.expect(http.StatusCreated, h.restock(strings.Repeat("k", 255), good))
}

func TestAKeyTakesEffectOnce(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	body := `{"lines":[{"productId":7,"quantity":5}],"note":"n"}`
	first := h.expect(http.StatusCreated, h.restock("k", body))
	same := h.expect(http.StatusCreated, h.restock("k", ` {"note":"n", "lines":[{"quantity":5,"productId":7}]}`))
	if string(same.body) != string(first.body) || same.header.Get(replayedHeader) != "true" {
		t.Errorf("repeat: replayed %q\n%s\n%s", same.header.Get(replayedHeader), first.body, same.body)
	}
	h.problem(h.expect(422, h.restock("k", `{"lines":[{"productId":7,"quantity":6}],"note":"n"}`)), "idempotency-key-reused")
	if stock := h.stock(); stock != 5.0 {
		t.Errorf("stock %v after one restock of 5", stock)
	}
	h.cabinet(8)
	h.expect(http.StatusCreated, h.send(Restocker, "POST", "/v1/cabinets/8/restocks", body, header{keyHeader: "k"}))
	h.expect(http.StatusCreated, h.send(Operator, "POST", restocksOf7, body, header{keyHeader: "k"}))
	if stock := h.stock(); stock != 10.0 {
		t.Errorf("stock %v: a key is one token's and one path's", stock)
	}
}

func TestARefusalForWhatDoesNotExistIsKept(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	body := `{"lines":[{"productId":7,"quantity":5}]}`
	send := func() reply {
		return h.send(Restocker, "POST", "/v1/cabinets/8/restocks", body, header{keyHeader: "k"})
	}
	first := h.expect(404, send())
	h.cabinet(8)
	second := h.expect(404, send())
	if string(first.body) != string(second.body) || first.header.Get(replayedHeader) != "" || second.header.Get(replayedHeader) != "true" {
		t.Errorf("first %s\nrepeat %s, replayed %q", first.body, second.body, second.header.Get(replayedHeader))
	}
}

func TestOneKeyAtTheSameMomentTakesEffectOnce(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	body := `{"lines":[{"productId":7,"quantity":5}]}`
	for round := range 5 {
		var mu sync.Mutex
		var wait sync.WaitGroup
		seen, fresh := map[string]int{}, 0
		for range 8 {
			wait.Go(func() {
				r := h.restock(fmt.Sprint("k", round), body)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.status == http.StatusConflict:
					h.problem(r, "in-progress")
				case r.status != http.StatusCreated:
					t.Errorf("status %d: %s", r.status, r.body)
				default:
					seen[string(r.body)]++
					if r.header.Get(replayedHeader) == "" {
						fresh++
					}
				}
			})
		}
		wait.Wait()
		if len(seen) != 1 || fresh != 1 {
			t.Errorf("round %d: %d different answers, %d of them first: %v", round, len(seen), fresh, seen)
		}
	}
	if stock := h.stock(); stock != 25.0 {
		t.Errorf("stock %v after 5 restocks of 5", stock)
	}
}

func TestARepeatWhileTheFirstIsRunningIsTold(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	body := `{"lines":[{"productId":7,"quantity":5}]}`
	held, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() { // holds the stock row, so that the first request waits inside its transaction
		done <- h.db.InTx(context.Background(), func(tx *gorm.DB) error {
			err := tx.Exec(`INSERT INTO device_stock (device_id, product_id, stock, version, updated_at) VALUES (7, 7, 0, 0, NOW(3))`).Error
			close(held)
			<-release
			return errJoin(err, errRollback)
		})
	}()
	<-held
	first := make(chan reply, 1)
	go func() { first <- h.restock("k", body) }()
	h.waitFor("the first request holds its key", func() bool {
		var waiting int
		err := h.db.Read(t.Context()).Raw(`SELECT COUNT(*) FROM information_schema.PROCESSLIST
			WHERE DB = DATABASE() AND INFO LIKE 'INSERT INTO device_stock%'`).Scan(&waiting).Error
		return err == nil && waiting > 0
	})
	begun := time.Now()
	h.problem(h.expect(http.StatusConflict, h.restock("k", body)), "in-progress")
	if took := time.Since(begun); took > database.LockWait {
		t.Errorf("told after %s", took)
	}
	close(release)
	if err := <-done; err == nil {
		t.Error("the holder was to roll back")
	}
	h.expect(http.StatusCreated, <-first)
	h.expect(http.StatusCreated, h.restock("k", body))
	if stock := h.stock(); stock != 5.0 {
		t.Errorf("stock %v", stock)
	}
}
