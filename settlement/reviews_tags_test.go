package settlement_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/inventory"
	"doortab/settlement"
)

// tagC is a third tag of product 7, and the first in ascending order.
const tagC = "3036142C8C008F8000053243"

// places lists where the books have each tag: its last digits, state, cabinet, the event that put it there, the event of the order
// that it is sold in.
func (s *shop) places() string {
	s.t.Helper()
	return strings.Join(s.rows(`SELECT CONCAT_WS(' ', RIGHT(epc, 2), state, e.device_id, e.close_event_id, CONCAT('order ', o.close_event_id))
		FROM epcs e LEFT JOIN orders o USING (order_id) ORDER BY epc`), ", ")
}

// units are those on the order of event e, by product; nothing where there is none.
func (s *shop) units() string {
	s.t.Helper()
	return strings.Join(s.rows(`SELECT CONCAT(product_id, 'x', SUM(quantity)) FROM order_lines JOIN orders o USING (order_id)
		WHERE o.close_event_id = 'e' GROUP BY product_id HAVING SUM(quantity) <> 0 ORDER BY product_id`), ", ")
}

func staff(id, before, after string, members ...string) string {
	return event(1001, id, append(members, `"kind":"restock"`, rfid(before, after))...)
}

func shopper(id, before, after string, members ...string) string {
	return event(1001, id, append(members, `"userId":42`, rfid(before, after))...)
}

func seq(n int) string { return fmt.Sprintf(`"seq":%d`, n) }

func oneLane(before, after int) string { return `"weights":[` + weighed(1, before, after) + "]" }

func weightOfOne(s *shop) {
	s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB, "", oneLane(690, 345)))
}

func reopenedSale(s *shop) {
	s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB, ""))
	s.mustReopen()
}

// Where event e of cabinet 1001 leaves the tags to a person. In cabinet 1001 are tags A and B unless it says otherwise.
var tagSituations = map[string]func(s *shop){
	"two tags gone, the weight of one": weightOfOne,
	"two tags gone, the weight unchanged": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB, "", oneLane(690, 690)))
	},
	"a tag that nobody knows gone too, the weight unchanged": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB+" "+tagC, tagB, oneLane(690, 690)))
	},
	"a tag of another cabinet": func(s *shop) {
		s.receipts(1002, event(1002, "in", `"kind":"restock"`, rfid("", tagA)))
		s.receipts(1001, shopper("e", tagA, ""))
	},
	"a tag that is sold": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("sold", tagA, ""), shopper("e", tagA+" "+tagB, ""))
	},
	"seen again by a later door": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB, tagB, oneLane(690, 690), seq(1)),
			staff("later", tagB, tagA+" "+tagB, seq(2)))
	},
	"booked in by a door that was earlier and came later": func(s *shop) {
		s.receipts(1001, shopper("e", tagA, "", seq(9)))
		s.receipts(1001, staff("in", "", tagA, seq(8)))
	},
	"carried off by staff since": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB, tagB, oneLane(690, 690), seq(1)),
			staff("later", tagA+" "+tagB, tagB, seq(2)))
	},
	"reopened": reopenedSale,
	"reopened after one was given back": func(s *shop) {
		reopenedSale(s)
		s.mustDecide(settlement.Amend, 7, 1)
		s.mustReopen()
	},
	"reopened after one was lost": func(s *shop) {
		weightOfOne(s)
		s.mustDecide(settlement.Waive)
		s.mustReopen()
	},
	"reopened, and one came back": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB, "", seq(1)), shopper("back", "", tagA, seq(2)))
		s.mustReopen()
	},
	"reopened after its tag was found to be wrong": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB, tagB))
		s.override(tagA, 8)
		s.mustReopen()
	},
	"a conflict before the outcome is decided": func(s *shop) {
		weightOfOne(s)
		s.receipts(1001, sale(1001, "e", 7, 5))
	},
	"a tag without a product that has one now": func(s *shop) {
		s.receipts(1001, shopper("e", "ABCD", ""))
		s.override("ABCD", 8)
	},
	"staff brought a tag of another cabinet": func(s *shop) {
		s.receipts(1002, event(1002, "in", `"kind":"restock"`, rfid("", tagA)))
		s.receipts(1001, staff("e", "", tagA+" "+tagB))
	},
	"staff brought two tags of another cabinet": func(s *shop) {
		s.receipts(1002, event(1002, "in", `"kind":"restock"`, rfid("", tagA+" "+tagB)))
		s.receipts(1001, staff("e", "", tagA+" "+tagB))
	},
	"thrown away since": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA+" "+tagB), shopper("e", tagA+" "+tagB, tagB, oneLane(690, 690)))
		s.throwAway(1001, tagA)
		s.exec("UPDATE epcs SET close_event_id = 'writeoff', updated_at = ? WHERE epc = ?", receivedAt.Add(time.Second), tagA)
	},
	"staff brought a tag that is sold": func(s *shop) {
		s.receipts(1001, staff("in", "", tagA), shopper("sold", tagA, ""), staff("e", "", tagA))
	},
}

func (s *shop) mustReopen() {
	s.t.Helper()
	if _, err := s.reopen(s.orderOf(1001, "e").OrderID); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) mustDecide(decision settlement.Decision, units ...int64) {
	s.t.Helper()
	if _, err := s.decide(s.review(1001, "e").ReviewID, decision, units...); err != nil {
		s.t.Fatal(err)
	}
}

// throwAway writes one unit of product 7 off, with its tag.
func (s *shop) throwAway(deviceID int64, epc string) {
	s.t.Helper()
	s.writeOffLine(deviceID, inventory.WriteoffLine{ProductID: 7, Quantity: 1, EPCs: []string{epc}})
}

func (s *shop) override(epc string, productID int64) {
	s.t.Helper()
	s.exec("REPLACE INTO epc_overrides (epc, product_id, updated_at) VALUES (?, ?, NOW(3))", epc, productID)
}

func TestADecisionMovesTheTags(t *testing.T) {
	t.Parallel()
	const (
		accept, amend, waive = settlement.Accept, settlement.Amend, settlement.Waive

		ofOne   = "two tags gone, the weight of one"
		ofNone  = "two tags gone, the weight unchanged"
		unknown = "a tag that nobody knows gone too, the weight unchanged"
		later   = "seen again by a later door"
		given   = "reopened after one was given back"

		bothSold = "44 sold 1001 e order e, 45 sold 1001 e order e"
		bothLost = "44 lost 1001 e, 45 lost 1001 e"
		firstOf2 = "44 sold 1001 e order e, 45 lost 1001 e"
		oneBack  = "44 sold 1001 e order e, 45 in_cabinet 1001 e"
	)
	for _, c := range []struct {
		situation string
		decision  settlement.Decision
		lines     []int64
		units     string
		want      string
	}{
		{ofOne, accept, nil, "7x2", bothSold},
		{ofOne, waive, nil, "7x1", firstOf2},
		{ofOne, amend, []int64{7, 1}, "7x1", firstOf2},
		{ofOne, amend, []int64{7, 3}, "7x3", bothSold},
		{ofOne, amend, nil, "", bothLost},
		{ofNone, accept, nil, "7x2", bothSold},
		{ofNone, waive, nil, "", bothLost},
		{ofNone, amend, []int64{8, 2}, "8x2", bothLost},
		{unknown, amend, []int64{7, 1}, "7x1", "43 lost 1001 e, 44 sold 1001 e order e, 45 in_cabinet 1001 in"},
		{unknown, accept, nil, "7x2", "43 sold 1001 e order e, 44 sold 1001 e order e, 45 in_cabinet 1001 in"},
		{"a tag of another cabinet", accept, nil, "7x1", "44 sold 1001 e order e"},
		{"a tag of another cabinet", waive, nil, "", "44 lost 1001 e"},
		{"a tag that is sold", accept, nil, "7x2", "44 sold 1001 sold order sold, 45 sold 1001 e order e"},
		{"a tag that is sold", waive, nil, "7x1", "44 sold 1001 sold order sold, 45 sold 1001 e order e"},
		{later, accept, nil, "7x1", "44 in_cabinet 1001 later, 45 in_cabinet 1001 in"},
		{later, waive, nil, "", "44 in_cabinet 1001 later, 45 in_cabinet 1001 in"},
		{"booked in by a door that was earlier and came later", accept, nil, "7x1", "44 sold 1001 e order e"},
		{"booked in by a door that was earlier and came later", waive, nil, "", "44 lost 1001 e"},
		{"carried off by staff since", accept, nil, "7x1", "44 lost 1001 later, 45 in_cabinet 1001 in"},
		{"reopened", accept, nil, "7x2", bothSold},
		{"reopened", waive, nil, "7x2", bothSold},
		{"reopened", amend, []int64{7, 1}, "7x1", oneBack},
		{"reopened", amend, []int64{7, 5}, "7x5", bothSold},
		{"reopened", amend, nil, "", "44 in_cabinet 1001 e, 45 in_cabinet 1001 e"},
		{given, waive, nil, "7x1", oneBack},
		{given, amend, []int64{7, 2}, "7x2", bothSold},
		{given, amend, nil, "", "44 in_cabinet 1001 e, 45 in_cabinet 1001 e"},
		{"reopened after one was lost", waive, nil, "7x1", firstOf2},
		{"reopened after one was lost", amend, []int64{7, 2}, "7x2", bothSold},
		{"reopened, and one came back", amend, []int64{7, 1}, "7x1", "44 in_cabinet 1001 back, 45 sold 1001 e order e"},
		{"reopened, and one came back", waive, nil, "7x2", "44 in_cabinet 1001 back, 45 sold 1001 e order e"},
		{"reopened after its tag was found to be wrong", amend, []int64{8, 1}, "8x1", "44 sold 1001 e order e, 45 in_cabinet 1001 in"},
		{"reopened after its tag was found to be wrong", waive, nil, "7x1", "44 sold 1001 e order e, 45 in_cabinet 1001 in"},
		{"a conflict before the outcome is decided", waive, nil, "7x1", "44 in_cabinet 1001 in, 45 in_cabinet 1001 in"},
		{"a conflict before the outcome is decided", amend, []int64{7, 2}, "7x2", bothSold},
		{"a conflict before the outcome is decided", amend, []int64{8, 1}, "8x1", "44 in_cabinet 1001 in, 45 in_cabinet 1001 in"},
		{"a tag without a product that has one now", amend, []int64{8, 1}, "8x1", "CD sold 1001 e order e"},
		{"a tag without a product that has one now", waive, nil, "", "CD lost 1001 e"},
		{"staff brought a tag of another cabinet", accept, nil, "", "44 in_cabinet 1001 e, 45 in_cabinet 1001 e"},
		{"staff brought a tag of another cabinet", waive, nil, "", "44 in_cabinet 1002 in, 45 in_cabinet 1001 e"},
		{"staff brought two tags of another cabinet", amend, []int64{7, 1}, "", "44 in_cabinet 1001 e, 45 in_cabinet 1002 in"},
		{"thrown away since", accept, nil, "7x1", "44 lost 1001 writeoff, 45 in_cabinet 1001 in"},
		{"staff brought a tag that is sold", accept, nil, "", "44 sold 1001 sold order sold"},
	} {
		t.Run(fmt.Sprintf("%s, %s %v", c.situation, c.decision, c.lines), func(t *testing.T) {
			t.Parallel()
			s := taggedShop(t)
			s.planned(1001)
			s.planned(1002)
			tagSituations[c.situation](s)
			s.mustDecide(c.decision, c.lines...)
			if got := s.units(); got != c.units {
				t.Errorf("units %q, want %q", got, c.units)
			}
			if diff := gocmp.Diff(strings.Split(c.want, ", "), strings.Split(s.places(), ", ")); diff != "" {
				t.Errorf("places (- wanted, + found):\n%s", diff)
			}
			s.audited()
		})
	}
}

func TestTheAuditLogHasTheTagsThatADecisionMoved(t *testing.T) {
	t.Parallel()
	s := taggedShop(t)
	s.planned(1001)
	weightOfOne(s)
	s.mustDecide(settlement.Waive)
	after := s.rows("SELECT after_change FROM audit_log WHERE action = 'review.waive'")[0]
	if want := fmt.Sprintf(`"tags":[{"epc":%q,"state":"sold"},{"epc":%q,"state":"lost"}]`, tagA, tagB); !strings.Contains(after, want) {
		t.Errorf("%s lacks %s", after, want)
	}
}

// TestALostTagThatShowsUp: staff bring it in again; at a sale it is a finding until somebody decides.
func TestALostTagThatShowsUp(t *testing.T) {
	t.Parallel()
	s := taggedShop(t)
	s.planned(1001)
	out := s.receipts(1001, staff("in", "", tagA+" "+tagB), staff("out", tagA+" "+tagB, tagB))[1]
	if out.Outcome != cabinet.Review || out.Reasons[0] != cabinet.ReasonEvidenceDisagrees {
		t.Errorf("staff carried a unit off: %+v", out)
	}
	if got := s.places(); got != "44 lost 1001 out, 45 in_cabinet 1001 in" || s.books().Stock != "7|2" {
		t.Errorf("carried off: %s, stock %s: a person decides about the unit", got, s.books().Stock)
	}
	s.writeOff(1001, 7, 1)
	if got := s.receipts(1001, shopper("sale", tagA+" "+tagB, tagB))[0]; got.Outcome != cabinet.Review ||
		!slices.Equal(got.Reasons, []cabinet.Reason{cabinet.ReasonEPCNotInCabinet}) || len(got.Lines) != 0 {
		t.Errorf("sold while lost: %+v", got)
	}
	again := s.receipts(1001, staff("again", tagB, tagA+" "+tagB))[0]
	if again.Outcome != cabinet.Restocked || s.books().Stock != "7|2" || s.places() != "44 in_cabinet 1001 again, 45 in_cabinet 1001 in" {
		t.Errorf("brought again: %+v, stock %s, %s", again, s.books().Stock, s.places())
	}
	s.audited()
}

// TestTwoReviewsOverOneTag: two doors saw the same tag go, and their reviews are decided at once by two processes.
func TestTwoReviewsOverOneTag(t *testing.T) {
	t.Parallel()
	s := taggedShop(t)
	s.planned(1001, 7, 50)
	processes := []*shop{s, s.another(nil)}
	for round := range 8 {
		tag, ids := fmt.Sprintf("3036142C8C008F80000532%02X", round), [2]string{}
		s.receipts(1001, staff(fmt.Sprint("in", round), "", tag))
		var reviews [2]int64
		for n := range ids {
			ids[n] = fmt.Sprint("e", round, "-", n)
			s.receipts(1001, shopper(ids[n], tag, "", oneLane(690, 690)))
			reviews[n] = s.review(1001, ids[n]).ReviewID
		}
		decisions := [2]settlement.Decision{settlement.Accept, settlement.Accept}
		if round%2 == 1 {
			decisions[0] = settlement.Waive
		}
		var both sync.WaitGroup
		for n, process := range processes {
			both.Go(func() {
				if _, err := process.decide(reviews[n], decisions[n]); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		got := s.rows("SELECT COALESCE(o.close_event_id, state) FROM epcs e LEFT JOIN orders o USING (order_id) WHERE epc = ?", tag)[0]
		if got != ids[1] && (round%2 == 1 || got != ids[0]) {
			t.Errorf("round %d: the tag is %s", round, got)
		}
	}
	s.audited()
}

// TestAWriterBetweenReadAndWriteOfATag: whoever is first decides, and the other sees it.
func TestAWriterBetweenReadAndWriteOfATag(t *testing.T) {
	t.Parallel()
	for _, conflicts := range []int{1, 3} { // after the third the tags are locked as they are read
		s := taggedShop(t)
		s.planned(1001)
		tagSituations["two tags gone, the weight unchanged"](s)
		other, met := s.another(nil), 0
		beforeWrite(t, s.db, "STRAIGHT_JOIN epcs", func(*gorm.DB) {
			switch met++; {
			case met == 1:
				other.receipts(1001, shopper("first", tagA+" "+tagB, tagB))
			case met <= conflicts:
				other.exec("UPDATE epcs SET version = version + 1 WHERE epc = ?", tagB)
			}
		})
		s.mustDecide(settlement.Waive)
		if got := s.places(); got != "44 sold 1001 first order first, 45 lost 1001 e" || met != conflicts+1 {
			t.Errorf("%d conflicts: %s after %d attempts", conflicts, got, met)
		}
		s.audited()
	}
}
