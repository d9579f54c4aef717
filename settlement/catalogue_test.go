package settlement_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/door"
	"doortab/inventory"
)

// What processes keep of the catalogue must not outlive a change by a single event.
func TestAChangeOfTheCatalogueCountsFromTheNextEventOn(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.catalogue("UPDATE products SET unit_weight_g = 100 WHERE product_id IN (7, 8)")
	s.cabinet(1001, 7, 1000, 8, 1000)
	processes := []*shop{s, s.another(nil)}
	catalogue, ctx, events := inventory.NewCatalogue(s.db), context.Background(), 0
	check := func(when, want string) {
		t.Helper()
		for n, process := range processes {
			for range 2 {
				events++
				payload := event(1001, fmt.Sprint("e", events), `"userId":42`, `"weights":[{"lane":1,"beforeGrams":900,"afterGrams":800}]`)
				d := deliveriesOf(1001, payload)
				d[0].ReceivedAt = database.Now().Add(time.Second)
				receipt := process.Settle(ctx, d)[0].Receipt
				got := fmt.Sprint(receipt.Outcome)
				if len(receipt.Lines) == 1 {
					got += fmt.Sprint(" ", receipt.Lines[0].ProductID, " ", receipt.Lines[0].UnitPriceMinor)
				}
				if got != want {
					t.Errorf("%s, process %d: %s, want %s", when, n, got, want)
				}
			}
		}
	}
	plan := func(productID int64) {
		t.Helper()
		err := s.db.InTx(ctx, func(tx *gorm.DB) error {
			_, _, err := inventory.ReplaceLanes(tx, 1001, []inventory.Lane{{Lane: 1, ProductID: productID, Capacity: 9}}, database.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	patch := func(productID int64, change func(*inventory.Product)) {
		t.Helper()
		if _, err := catalogue.Patch(ctx, productID, change); err != nil {
			t.Fatal(err)
		}
	}
	check("without a planogram", "review")
	plan(7)
	check("with one", "settled 7 500")
	patch(7, func(p *inventory.Product) { p.PriceMinor = 555 })
	check("at another price", "settled 7 555")
	plan(8)
	check("with another product in the lane", "settled 8 300")
	heavier := int64(50)
	patch(8, func(p *inventory.Product) { p.UnitWeightGrams = &heavier })
	processes[0], processes[1] = processes[1], processes[0]
	check("of half the weight", "settled 8 300")
	if n := s.count("order_lines", "product_id = 8 AND quantity = 2"); n != 4 {
		t.Errorf("%d orders of two", n)
	}
	s.audited()
}

// What is kept of prices begins a day ago; a door that was opened before has its own, also among others.
func TestAnEventThatComesDaysAfterItsDoorWasOpened(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 100)
	now := database.Now()
	for price, days := range map[int]int{610: 4, 620: 2} {
		s.catalogue("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (7, ?, ?)", now.AddDate(0, 0, -days), price)
	}
	session := s.openAt(door.Request{DeviceID: 1001, UserID: 42, Kind: cabinet.KindSale, App: "shopper"}, now.AddDate(0, 0, -3))
	d := deliveriesOf(1001, sale(1001, "warm", 7, 1), sale(1001, session.CloseEventID, 7, 1), sale(1001, "beside", 7, 1))
	for i := range d {
		d[i].ReceivedAt = now
	}
	answers := append(s.Settle(t.Context(), d[:1]), s.Settle(t.Context(), d[1:])...)
	for i, want := range []int64{620, 610, 620} {
		if r := answers[i].Receipt; len(r.Lines) != 1 || r.Lines[0].UnitPriceMinor != want {
			t.Errorf("%s: %+v, want a price of %d", r.CloseEventID, r, want)
		}
	}
	s.audited()
}

// A group that has read the mark, and then waits while somebody changes a price, leaves no old price for the next.
func TestAPriceThatChangesWhileAGroupReads(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 100)
	catalogue := inventory.NewCatalogue(s.db)
	var prices sync.WaitGroup
	defer prices.Wait()
	stop := make(chan struct{})
	defer close(stop)
	prices.Go(func() {
		for price := int64(501); ; price++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := catalogue.Patch(context.Background(), 7, func(p *inventory.Product) { p.PriceMinor = price }); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 200 {
		before, err := catalogue.Product(context.Background(), 7)
		if err != nil {
			t.Fatal(err)
		}
		d := deliveriesOf(1001, sale(1001, fmt.Sprint("e", i), 7, 1))
		d[0].ReceivedAt = database.Now().Add(time.Hour) // the last price that is there
		answer := s.Settle(context.Background(), d)[0]
		if answer.Err != nil || answer.Receipt.Lines[0].UnitPriceMinor < before.PriceMinor {
			t.Fatalf("event %d: price %d was committed before, and it has %+v, %v", i, before.PriceMinor, answer.Receipt, answer.Err)
		}
	}
}
