package settlement_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"doortab/cabinet"
)

// Tags of product 7, whose GTIN-14 is 08719139005740 (GS1 EPC TDS, SGTIN-96).
const (
	tagA = "3036142C8C008F8000053244"
	tagB = "3036142C8C008F8000053245"
)

// taggedShop weighs and tags product 7: 345 g, in lane 1. Product 8 weighs 500 g, in lane 2.
func taggedShop(t *testing.T) *shop {
	s := newShop(t)
	s.catalogue("UPDATE products SET gtin = '08719139005740', gtin14 = '08719139005740', unit_weight_g = 345 WHERE product_id = 7")
	s.catalogue("UPDATE products SET unit_weight_g = 500 WHERE product_id = 8")
	return s
}

func (s *shop) planned(deviceID int64, stock ...int64) {
	s.t.Helper()
	s.cabinet(deviceID, stock...)
	s.catalogue("INSERT INTO lanes (device_id, lane, product_id, capacity, par_level) VALUES (?, 1, 7, 20, 4), (?, 2, 8, 20, 4)", deviceID, deviceID)
}

// tags lists the places of all tags: epc's last digits, state, cabinet, whether an order is named.
func (s *shop) tags() []string {
	s.t.Helper()
	return s.rows("SELECT RIGHT(epc, 2), state, device_id, order_id IS NOT NULL FROM epcs ORDER BY epc")
}

func rfid(before, after string) string {
	list := func(tags string) string {
		if tags == "" {
			return "[]"
		}
		return `["` + strings.ReplaceAll(tags, " ", `","`) + `"]`
	}
	return fmt.Sprintf(`"rfid":{"before":%s,"after":%s}`, list(before), list(after))
}

func weighed(lane, before, after int) string {
	return fmt.Sprintf(`{"lane":%d,"beforeGrams":%d,"afterGrams":%d}`, lane, before, after)
}

func TestATagHasOnePlace(t *testing.T) {
	t.Parallel()
	s := taggedShop(t)
	s.planned(1001)
	s.planned(1002)
	user := `"userId":42`
	// One group: the doors of a cabinet find what the door before them left.
	got := s.receipts(1001,
		event(1001, "e1", `"kind":"restock"`, rfid("", tagA+" "+tagB)),
		event(1001, "e2", user, rfid(tagA+" "+tagB, tagB)),
		event(1001, "e3", user, rfid(tagA, "")))
	if got[0].Outcome != cabinet.Restocked || got[1].Outcome != cabinet.Settled || got[1].TotalMinor != 500 {
		t.Errorf("restocked and sold: %+v", got[:2])
	}
	if got[2].Outcome != cabinet.Review || got[2].Reasons[0] != cabinet.ReasonEPCAlreadySold || len(got[2].Lines) != 0 {
		t.Errorf("sold twice: %+v", got[2])
	}
	if diff := cmp.Diff([]string{"44|sold|1001|1", "45|in_cabinet|1001|0"}, s.tags()); diff != "" {
		t.Errorf("places (- wanted, + found):\n%s", diff)
	}

	elsewhere := s.receipts(1002, event(1002, "e4", user, rfid(tagB, "")))[0]
	if elsewhere.Outcome != cabinet.Review || elsewhere.Reasons[0] != cabinet.ReasonEPCElsewhere {
		t.Errorf("a tag of another cabinet: %+v", elsewhere)
	}
	back := s.receipts(1001, event(1001, "e5", user, rfid("", tagA)))[0]
	if back.Outcome != cabinet.Review || back.Reasons[0] != cabinet.ReasonEPCAlreadySold {
		t.Errorf("a sold tag that is back: %+v", back)
	}
	refund := s.rows("SELECT evidence FROM reviews WHERE close_event_id = 'e5'")[0]
	if !strings.Contains(refund, `"refundProductId":7`) {
		t.Errorf("no refund is suggested: %s", refund)
	}
	// e3 came in the group of the sale, whose order had no number yet.
	again := s.rows("SELECT evidence FROM reviews WHERE close_event_id = 'e3'")[0]
	if want := `"sales":[{"epc":"` + tagA + `","deviceId":1001,"closeEventId":"e2"}]`; !strings.Contains(again, want) {
		t.Errorf("sold twice: %s, want %s", again, want)
	}
	want := `"sales":[{"epc":"` + tagA + `","deviceId":1001,"closeEventId":"e2","orderId":"` + got[1].OrderID + `"}]`
	if !strings.Contains(refund, want) {
		t.Errorf("a sold tag that is back: %s, want %s", refund, want)
	}
	if diff := cmp.Diff([]string{"44|in_cabinet|1001|0", "45|in_cabinet|1001|0"}, s.tags()); diff != "" {
		t.Errorf("places in the end (- wanted, + found):\n%s", diff)
	}
	s.audited()
}

func TestAnOverrideNamesATag(t *testing.T) {
	t.Parallel()
	s := taggedShop(t)
	s.planned(1001, 8, 5)
	s.exec("INSERT INTO epc_overrides (epc, product_id, updated_at) VALUES (?, 8, NOW(3))", tagA)
	s.receipts(1001, event(1001, "e1", `"kind":"restock"`, rfid("", tagA)))
	got := s.receipts(1001, event(1001, "e2", `"userId":42`, rfid(tagA, "")))[0]
	if len(got.Lines) != 1 || got.Lines[0].ProductID != 8 {
		t.Errorf("lines %+v, want product 8", got.Lines)
	}
	s.audited()
}

func TestScalesAndTagsTogether(t *testing.T) {
	t.Parallel()
	s := taggedShop(t)
	s.planned(1001, 7, 10, 8, 10)
	s.receipts(1001, event(1001, "e0", `"kind":"restock"`, rfid("", tagA+" "+tagB)))
	got := s.receipts(1001,
		event(1001, "e1", `"userId":42`, `"weights":[`+weighed(1, 3450, 2760)+`]`, rfid(tagA+" "+tagB, "")),
		event(1001, "e2", `"userId":42`, `"weights":[`+weighed(2, 5000, 4003)+`]`),
		event(1001, "e3", `"userId":42`, `"weights":[`+weighed(2, 4000, 4650)+`]`))
	for i, want := range []string{"settled 7×2", "settled 8×2", "review"} {
		text := string(got[i].Outcome)
		for _, l := range got[i].Lines {
			text += fmt.Sprintf(" %d×%d", l.ProductID, l.Quantity)
		}
		if text != want {
			t.Errorf("door %d: %s, want %s", i+1, text, want)
		}
	}
	evidence := s.rows("SELECT evidence FROM order_lines JOIN orders USING (device_id, order_id) WHERE close_event_id = 'e1'")[0]
	for _, number := range []string{`"lane":1`, `"beforeGrams":3450`, `"afterGrams":2760`, `"unitWeightGrams":345`, tagA, `"rule"`, `"confidence"`} {
		if !strings.Contains(evidence, number) {
			t.Errorf("evidence %s lacks %s", evidence, number)
		}
	}
	s.audited()
}

// TestAUnitInTheWrongLaneIsRemembered: what one door puts into a wrong lane, another takes out of it.
func TestAUnitInTheWrongLaneIsRemembered(t *testing.T) {
	t.Parallel()
	s := taggedShop(t)
	s.planned(1001, 7, 10, 8, 10)
	moved := s.receipts(1001, event(1001, "e1", `"userId":42`, `"weights":[`+weighed(1, 3450, 3105)+","+weighed(2, 5000, 5345)+`]`))[0]
	if moved.Outcome != cabinet.Empty || moved.Reasons[0] != cabinet.ReasonMisplacedReturn {
		t.Fatalf("a unit put into the wrong lane: %+v", moved)
	}
	taken := s.receipts(1001, event(1001, "e2", `"userId":42`, `"weights":[`+weighed(2, 5345, 5000)+`]`))[0]
	if len(taken.Lines) != 1 || taken.Lines[0].ProductID != 7 || taken.Lines[0].Quantity != 1 {
		t.Errorf("it was taken from there: %+v", taken)
	}
	if left := s.rows("SELECT strays, version FROM cabinet_strays"); len(left) != 1 || left[0] != "[]|2" {
		t.Errorf("strays %v", left)
	}
	s.audited()
}

// TestOneTagIsSoldOnce: two processes settle two doors that both took the same tag.
func TestOneTagIsSoldOnce(t *testing.T) {
	t.Parallel()
	s := taggedShop(t)
	s.planned(1001, 7, 50)
	other := s.another(nil)
	for round := range 10 {
		tag := fmt.Sprintf("3036142C8C008F80000532%02X", round)
		s.receipts(1001, event(1001, fmt.Sprint("in", round), `"kind":"restock"`, rfid("", tag)))
		var both sync.WaitGroup
		outcomes := make([]cabinet.Outcome, 2)
		for i, process := range []*shop{s, other} {
			both.Go(func() {
				answer := process.settle(1001, event(1001, fmt.Sprintf("out%d-%d", round, i), `"userId":42`, rfid(tag, "")))[0]
				if answer.Err == nil {
					outcomes[i] = answer.Receipt.Outcome
				}
			})
		}
		both.Wait()
		if outcomes[0] == outcomes[1] || outcomes[0] == "" || outcomes[1] == "" {
			t.Errorf("round %d: both doors ended as %v", round, outcomes)
		}
	}
	s.audited()
}
