package admin

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/settlement"
)

// deafConn loses the server's answer to the next COMMIT once it is armed; the server has done it then.
type deafConn struct {
	net.Conn
	armed *atomic.Bool
	deaf  bool
}

func (c *deafConn) Write(p []byte) (int, error) {
	if bytes.HasSuffix(p, []byte("COMMIT")) && c.armed.CompareAndSwap(true, false) {
		c.deaf = true
	}
	return c.Conn.Write(p)
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.deaf {
		_ = c.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// newDeafHarness is a harness whose server loses the answer to one COMMIT each time it is armed.
func newDeafHarness(t *testing.T) (*harness, *atomic.Bool) {
	t.Helper()
	h := newShop(t)
	armed := new(atomic.Bool)
	settings, err := mysql.ParseDSN(h.dsn)
	if err != nil {
		t.Fatal(err)
	}
	network := settings.Net
	settings.Net = "deaf-" + settings.DBName
	mysql.RegisterDialContext(settings.Net, func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &deafConn{Conn: conn, armed: armed}, err
	})
	t.Cleanup(func() { mysql.DeregisterDialContext(settings.Net) })
	db := databasetest.Open(t, settings.FormatDSN())
	registry, quiet := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	h.server = New(Config{
		DB: db, Metrics: registry, Currency: "CNY", Logger: quiet,
		Settlement: settlement.New(settlement.Config{DB: db, Currency: "CNY", Logger: quiet, Metrics: registry}),
	})
	return h, armed
}

func TestALostAnswerToCommitChangesNothingForTheCaller(t *testing.T) {
	t.Parallel()
	h, armed := newDeafHarness(t)
	h.product(`{"productId":8,"sku":"TEA","name":"Tea","priceMinor":300}`)
	h.settle(event("e", `,"userId":42,"items":[{"productId":8,"quantity":1,"confidence":0.5}]`), database.Now())
	h.settle(event("f", `,"userId":42,"items":[{"productId":8,"quantity":1}]`), database.Now())
	reviews, _ := h.walk("/v1/reviews?")
	orders, _ := h.walk("/v1/orders?")
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"restock":                 {"POST", restocksOf7, `{"lines":[{"productId":7,"quantity":5}]}`, 201},
		"restock of nothing":      {"POST", "/v1/cabinets/99/restocks", `{"lines":[{"productId":7,"quantity":5}]}`, 404},
		"product with its number": {"POST", "/v1/products", `{"productId":70,"sku":"A","name":"a","gtin":"40170725","priceMinor":1}`, 201},
		"product without":         {"POST", "/v1/products", `{"sku":"B","name":"b","priceMinor":1}`, 201},
		"price":                   {"PATCH", "/v1/products/7", `{"priceMinor":501}`, 200},
		"cabinet":                 {"POST", "/v1/cabinets", `{"deviceId":8,"name":"c"}`, 201},
		"site":                    {"PATCH", "/v1/cabinets/7", `{"site":"d"}`, 200},
		"secret":                  {"POST", "/v1/cabinets/7/credentials", "", 201},
		"review":                  {"POST", resolutionOf(reviews[0]["reviewId"]), `{"decision":"accept","note":"n"}`, 200},
		"reopened order":          {"POST", fmt.Sprintf("/v1/orders/%v/reviews", orders[0]["orderId"]), `{"note":"n"}`, 201},
		"token":                   {"POST", "/v1/tokens", `{"name":"e","role":"app"}`, 201},
	} {
		armed.Store(true)
		r := h.send(Admin, c.method, c.path, c.body, header{keyHeader: "k"})
		if r.status != c.status || r.header.Get(replayedHeader) != "" && c.status < 400 {
			t.Errorf("%s: status %d, want %d; replayed %q: %s", name, r.status, c.status, r.header.Get(replayedHeader), r.body)
		}
		if armed.Load() {
			t.Errorf("%s: no answer was lost", name)
		}
	}
	if stock := h.stock(); stock != 5.0 {
		t.Errorf("stock %v after one restock of 5", stock)
	}
	var corrections int
	err := h.db.Read(t.Context()).Raw("SELECT COUNT(*) FROM order_lines WHERE origin = 'review'").Scan(&corrections).Error
	if open, _ := h.walk("/v1/reviews?"); err != nil || corrections != 1 || len(open) != 2 {
		t.Errorf("%d corrections, reviews %v, %v", corrections, open, err)
	}
	var prices int
	err = h.db.Read(t.Context()).Raw("SELECT COUNT(*) FROM product_prices WHERE product_id = 7").Scan(&prices).Error
	if err != nil || prices != 2 {
		t.Errorf("%d prices of product 7, %v", prices, err)
	}
	r := h.send(Admin, "POST", restocksOf7, `{"lines":[{"productId":7,"quantity":5}]}`, header{keyHeader: "k"})
	if h.expect(http.StatusCreated, r).header.Get(replayedHeader) != "true" {
		t.Error("a repeat is not told as one")
	}
}
