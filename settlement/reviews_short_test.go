package settlement_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/archive"
	"doortab/database"
	"doortab/settlement"
)

// amend reopens the order of event e and says how many of product 7 were taken.
func (s *shop) amend(units int64) {
	s.t.Helper()
	review, err := s.reopen(s.orderOf(1001, "e").OrderID)
	if err != nil {
		s.t.Fatal(err)
	}
	s.amendReview(review.ReviewID, units)
}

func (s *shop) amendReview(reviewID, units int64) {
	s.t.Helper()
	var lines []int64
	if units > 0 {
		lines = []int64{7, units}
	}
	if _, err := s.decide(reviewID, settlement.Amend, lines...); err != nil {
		s.t.Fatal(err)
	}
}

// archiveAll archives every order and movement that can be.
func (s *shop) archiveAll() {
	s.t.Helper()
	_, err := archive.Run(context.Background(), s.db, archive.Options{Before: database.Now().AddDate(0, 0, 1), Batch: 100})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestUnitsThatTheBooksNeverGaveDontComeBack: of one unit on the books an event took three, or so it seemed.
func TestUnitsThatTheBooksNeverGaveDontComeBack(t *testing.T) {
	t.Parallel()
	type steps = []func(s *shop)
	amend := func(units int64) func(*shop) { return func(s *shop) { s.amend(units) } }
	restock := func(units int64) func(*shop) { return func(s *shop) { s.restock(1001, 7, units) } }
	count := func(asOfSeq int, units int64) func(*shop) {
		return func(s *shop) { s.stocktake(1001, asOfSeq, 7, units) }
	}
	sell := func(id string, units int64) func(*shop) {
		return func(s *shop) { s.settle(1001, sale(1001, id, 7, units)) }
	}
	waive := func(s *shop) {
		review, err := s.reopen(s.orderOf(1001, "e").OrderID)
		if err == nil {
			_, err = s.decide(review.ReviewID, settlement.Waive)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		seq   string
		steps steps
		stock string
		moved []string // by reviews: quantity, delta, shortfall
	}{
		"to what the books had":      {"", steps{amend(1)}, "0", []string{"2|0|-2"}},
		"to more than the books had": {"", steps{amend(2)}, "0", []string{"1|0|-1"}},
		"to nothing":                 {"", steps{amend(0)}, "1", []string{"3|1|-2"}},
		"down step by step":          {"", steps{amend(2), amend(1), amend(0)}, "1", []string{"1|0|-1", "1|0|-1", "1|1|0"}},
		"down, up and down again":    {"", steps{amend(1), amend(4), amend(1)}, "0", []string{"2|0|-2", "-3|0|3", "3|0|-3"}},
		"up and down":                {"", steps{amend(5), amend(0)}, "1", []string{"-2|0|2", "5|1|-4"}},
		"nothing, then more than ten": {"", steps{amend(0), restock(10), amend(11), amend(12), amend(0)}, "11",
			[]string{"3|1|-2", "-11|-11|0", "-1|0|1", "12|11|-1"}},
		"waived":                      {"", steps{waive}, "0", nil},
		"a restock in between":        {"", steps{restock(10), amend(1)}, "10", []string{"2|0|-2"}},
		"up out of a restock":         {"", steps{restock(10), amend(5), amend(1)}, "10", []string{"-2|-2|0", "4|2|-2"}},
		"another event's shortfall":   {"", steps{sell("f", 4), amend(0)}, "1", []string{"3|1|-2"}},
		"archived":                    {"", steps{restock(10), func(s *shop) { s.archiveAll() }, amend(1)}, "10", []string{"2|0|-2"}},
		"a count that has seen it":    {`"seq":6`, steps{count(6, 4), amend(1)}, "4", []string{"2|0|0"}},
		"a count of before it, right": {`"seq":6`, steps{count(5, 1), amend(1)}, "0", []string{"2|0|-2"}},
		"a count of before it, more":  {`"seq":6`, steps{count(5, 4), amend(1)}, "3", []string{"2|2|0"}},
		"a count of before it, less":  {`"seq":6`, steps{count(5, 0), amend(1)}, "0", []string{"2|0|-2"}},
		"more found, then up and down": {`"seq":6`, steps{count(5, 4), amend(6), amend(1)}, "3",
			[]string{"-3|-1|2", "5|3|-2"}},
		"more found, without a place": {"", steps{sell("seq", 1), count(0, 4), amend(1)}, "4", []string{"2|0|-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.cabinet(1001, 7, 1)
			s.exec("REPLACE INTO cabinet_sequences (device_id, epoch, last_seq) VALUES (1001, 0, 5)")
			members := []string{`"userId":42`, items(7, 3)}
			if c.seq != "" {
				members = append(members, c.seq)
			}
			s.settle(1001, event(1001, "e", members...))
			for _, step := range c.steps {
				step(s)
				s.audited()
			}
			if got := s.rows("SELECT stock FROM device_stock WHERE product_id = 7"); got[0] != c.stock {
				t.Errorf("stock %s, want %s", got[0], c.stock)
			}
			moved := s.rows(`SELECT m.quantity, m.delta, COALESCE(x.quantity, 0) FROM stock_movements m
				LEFT JOIN discrepancies x USING (device_id, product_id, version) WHERE m.kind = 'review' ORDER BY m.version`)
			if diff := gocmp.Diff(c.moved, slices.Clip(moved)); diff != "" {
				t.Errorf("reviews moved (- want, + got): %s", diff)
			}
		})
	}
}

// What a restock door brought and others took since can be taken away and added again without changing the books.
func TestARestockDoorAmendedDownAndUp(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001)
	brought := func(units int64) string { return event(1001, "e", `"kind":"restock"`, items(7, units)) }
	s.settle(1001, brought(5))
	s.settle(1001, sale(1001, "f", 7, 5))
	for n, want := range []struct{ says, units, moved int64 }{{9, 2, 0}, {8, 5, 0}, {7, 6, 1}} {
		s.settle(1001, brought(want.says)) // a conflict
		s.amendReview(s.review(1001, "e").ReviewID, want.units)
		if got := s.books().Stock; got != fmt.Sprint("7|", want.moved) {
			t.Errorf("decision %d: stock %s, want %d", n, got, want.moved)
		}
		s.audited()
	}
}
