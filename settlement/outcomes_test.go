package settlement_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"doortab/cabinet"
	"doortab/settlement"
)

// kept is all that the tables hold of one cabinet, its opening restock left out.
type kept struct {
	Receipt       string // outcome, reasons, total, lines as product×quantity@price
	Settlement    []string
	Order         []string // status, user, total
	Lines         []string // line, origin, product, quantity, price, amount
	Movements     []string // product, version, kind, quantity, delta, balance, ref
	Stock         []string // product, stock, version
	Discrepancies []string // product, version, kind, quantity, ref
	Reviews       []string // reasons, proposed
	Letters       []string // reason, closeEventId, copies
}

func (s *shop) kept(deviceID int64, answer settlement.Answer) kept {
	s.t.Helper()
	read := func(query string) []string { return s.rows(query, deviceID) }
	return kept{
		Receipt:    receiptText(answer),
		Settlement: read("SELECT outcome FROM settlements WHERE device_id = ?"),
		Order:      read("SELECT status, user_id, total_minor FROM orders WHERE device_id = ?"),
		Lines: read(`SELECT line, origin, product_id, quantity, unit_price_minor, amount_minor FROM order_lines
			WHERE device_id = ? ORDER BY line`),
		Movements: read(`SELECT product_id, version, kind, quantity, delta, balance, ref FROM stock_movements
			WHERE device_id = ? AND ref LIKE 'e%' AND LENGTH(ref) < 5 ORDER BY product_id, version`),
		Stock:         read("SELECT product_id, stock, version FROM device_stock WHERE device_id = ? ORDER BY product_id"),
		Discrepancies: read("SELECT product_id, version, kind, quantity, ref FROM discrepancies WHERE device_id = ?"),
		Reviews:       read("SELECT reasons, proposed FROM reviews WHERE device_id = ? AND status = 'open'"),
		Letters:       read("SELECT reason, close_event_id, copies FROM dead_letters WHERE device_id = ?"),
	}
}

func receiptText(a settlement.Answer) string {
	if a.Err != nil {
		return a.Err.Error()
	}
	if a.Receipt == nil {
		return "none"
	}
	r := a.Receipt
	text := fmt.Sprint(r.Outcome, " ", r.Reasons, " ", r.TotalMinor)
	for _, l := range r.Lines {
		text += fmt.Sprintf(" %d×%d@%d", l.ProductID, l.Quantity, l.UnitPriceMinor)
	}
	return text
}

const untouched = "7|10|1"

func TestOutcomes(t *testing.T) {
	t.Parallel()
	sound := `{"productId":7,"quantity":2}`
	// The books of a sale of two units of 7, whatever else is doubted.
	twoSold := func(k kept) kept {
		k.Lines = []string{"1|settlement|7|2|500|1000"}
		k.Movements = []string{"7|2|sale|-2|-2|8|e"}
		k.Stock = []string{"7|8|2"}
		return k
	}
	doubted := func(reason, proposed string) kept {
		return twoSold(kept{
			Receipt: "review [" + reason + "] 1000 7×2@500", Settlement: []string{"review"}, Order: []string{"review|42|1000"},
			Reviews: []string{`["` + reason + `"]|` + proposed},
		})
	}
	undecided := func(reason string) kept {
		return kept{
			Receipt: "review [" + reason + "] 0", Settlement: []string{"review"}, Stock: []string{untouched},
			Reviews: []string{`["` + reason + `"]|[]`},
		}
	}
	cases := []struct {
		name    string
		members []string
		want    kept
	}{
		{"sale", []string{`"userId":42`, items(7, 2)}, twoSold(kept{
			Receipt: "settled [] 1000 7×2@500", Settlement: []string{"settled"}, Order: []string{"open|42|1000"},
		})},
		{"two entries of one product", []string{`"userId":42`, items(7, 1, 7, 1)}, twoSold(kept{
			Receipt: "settled [] 1000 7×2@500", Settlement: []string{"settled"}, Order: []string{"open|42|1000"},
		})},
		{"nothing taken", []string{`"userId":42`, items()}, kept{
			Receipt: "empty [] 0", Settlement: []string{"empty"}, Stock: []string{untouched},
		}},
		{"nothing taken by nobody", []string{items()}, kept{
			Receipt: "empty [] 0", Settlement: []string{"empty"}, Stock: []string{untouched},
		}},
		{"nothing taken, and a wrong seq", []string{`"seq":"x"`, items()}, undecided("evidence_disagrees")},
		{"a user that is none", []string{`"userId":"x"`, items(7, 2)}, twoSold(kept{
			Receipt: "review [unattributed] 1000 7×2@500", Settlement: []string{"review"}, Order: []string{"review||1000"},
			Reviews: []string{`["unattributed"]|[]`},
		})},
		{"a wrong time of opening", []string{`"userId":42,"openedAt":7`, items(7, 2)}, twoSold(kept{
			Receipt: "settled [clock_skew] 1000 7×2@500", Settlement: []string{"settled"}, Order: []string{"open|42|1000"},
		})},
		{"no user", []string{items(7, 2)}, twoSold(kept{
			Receipt: "review [unattributed] 1000 7×2@500", Settlement: []string{"review"}, Order: []string{"review||1000"},
			Reviews: []string{`["unattributed"]|[]`},
		})},
		{"unknown product beside a known one", []string{`"userId":42`, items(7, 2, 99, 1)}, doubted("unknown_product", "[]")},
		{"quantity 0", []string{`"userId":42`, `"items":[` + sound + `,{"productId":8,"quantity":0}]`}, doubted("invalid_quantity", "[]")},
		{"quantity -3", []string{`"userId":42`, `"items":[` + sound + `,{"productId":8,"quantity":-3}]`}, doubted("invalid_quantity", "[]")},
		{"quantity 1.5", []string{`"userId":42`, `"items":[` + sound + `,{"productId":8,"quantity":1.5}]`}, doubted("invalid_quantity", "[]")},
		{"quantity as text", []string{`"userId":42`, `"items":[` + sound + `,{"productId":8,"quantity":"2"}]`}, doubted("invalid_quantity", "[]")},
		{"quantity 10^9", []string{`"userId":42`, `"items":[` + sound + `,{"productId":8,"quantity":1000000000}]`}, doubted("invalid_quantity", "[]")},
		{"low confidence", []string{`"userId":42`, `"items":[` + sound + `,{"productId":8,"quantity":1,"confidence":0.79}]`},
			doubted("low_confidence", `[{"productId":8,"quantity":1}]`)},
		{"confidence at the threshold", []string{`"userId":42`, `"items":[{"productId":7,"quantity":2,"confidence":0.8}]`}, twoSold(kept{
			Receipt: "settled [] 1000 7×2@500", Settlement: []string{"settled"}, Order: []string{"open|42|1000"},
		})},
		{"clock of 1970", []string{`"userId":42`, `"closedAt":"1970-01-01T00:00:07Z"`, items(7, 2)}, twoSold(kept{
			Receipt: "settled [clock_skew] 1000 7×2@500", Settlement: []string{"settled"}, Order: []string{"open|42|1000"},
		})},
		{"clock of 2099", []string{`"userId":42`, `"closedAt":"2099-12-31T23:59:59Z"`, items(7, 2)}, twoSold(kept{
			Receipt: "settled [clock_skew] 1000 7×2@500", Settlement: []string{"settled"}, Order: []string{"open|42|1000"},
		})},
		{"every entry wrong", []string{`"userId":42`, `"items":[{"productId":7,"quantity":0}]`}, undecided("invalid_quantity")},
		{"weights alone", []string{`"userId":42`, `"weights":[{"lane":3,"beforeGrams":900,"afterGrams":400}]`}, undecided("unknown_lane")},
		{"tags alone", []string{`"userId":42`, `"rfid":{"before":["3036142C8C008F8000053244"],"after":[]}`}, undecided("unknown_product")},
		{"scales and antennas saw no change", []string{
			`"weights":[{"lane":3,"beforeGrams":900,"afterGrams":900}],"rfid":{"before":["3036142C8C008F8000053244"],"after":["3036142C8C008F8000053244"]}`,
		}, kept{Receipt: "empty [] 0", Settlement: []string{"empty"}, Stock: []string{untouched}}},
		{"staff brought goods", []string{`"kind":"restock"`, items(7, 5, 9, 3)}, kept{
			Receipt: "restocked [] 0", Settlement: []string{"restocked"},
			Movements: []string{"7|2|restock|5|5|15|e", "9|1|restock|3|3|3|e"}, Stock: []string{"7|15|2", "9|3|1"},
		}},
		{"staff brought something unknown too", []string{`"kind":"restock"`, items(7, 5, 99, 3)}, kept{
			Receipt: "review [unknown_product] 0", Settlement: []string{"review"},
			Movements: []string{"7|2|restock|5|5|15|e"}, Stock: []string{"7|15|2"}, Reviews: []string{`["unknown_product"]|[]`},
		}},
		{"more taken than booked", []string{`"userId":42`, items(7, 11)}, kept{
			Receipt: "settled [shortfall] 5500 7×11@500", Settlement: []string{"settled"}, Order: []string{"open|42|5500"},
			Lines: []string{"1|settlement|7|11|500|5500"}, Movements: []string{"7|2|sale|-11|-10|0|e"},
			Stock: []string{"7|0|2"}, Discrepancies: []string{"7|2|shortfall|1|e"},
		}},
		{"taken where there was no stock row", []string{`"userId":42`, items(8, 2)}, kept{
			Receipt: "settled [shortfall] 600 8×2@300", Settlement: []string{"settled"}, Order: []string{"open|42|600"},
			Lines: []string{"1|settlement|8|2|300|600"}, Movements: []string{"8|1|sale|-2|0|0|e"},
			Stock: []string{untouched, "8|0|1"}, Discrepancies: []string{"8|1|shortfall|2|e"},
		}},
		{"several doubts and a shortfall", []string{items(7, 11, 99, 1)}, kept{
			Receipt: "review [shortfall unattributed unknown_product] 5500 7×11@500", Settlement: []string{"review"},
			Order: []string{"review||5500"}, Lines: []string{"1|settlement|7|11|500|5500"},
			Movements: []string{"7|2|sale|-11|-10|0|e"}, Stock: []string{"7|0|2"}, Discrepancies: []string{"7|2|shortfall|1|e"},
			Reviews: []string{`["shortfall","unattributed","unknown_product"]|[]`},
		}},
	}
	s := newShop(t)
	for i, c := range cases {
		device := int64(2000 + i)
		s.cabinet(device, 7, 10)
		answer := s.settle(device, event(device, "e", c.members...))[0]
		if diff := cmp.Diff(c.want, s.kept(device, answer)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
	s.audited()
}

func TestMessagesThatAreNoEventOfTheirCabinet(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	big := `"userId":42,"note":"` + strings.Repeat("x", cabinet.MaxPayload) + `"`
	rejected := func(letter string) kept { return kept{Receipt: "rejected [] 0", Letters: []string{letter}} }
	unanswered := func(letter string) kept { return kept{Receipt: "none", Letters: []string{letter}} }
	cases := []struct {
		name    string
		payload func(device int64) string
		want    kept
	}{
		{"not JSON", func(int64) string { return "hello" }, unanswered("malformed||1")},
		{"empty", func(int64) string { return "" }, unanswered("malformed||1")},
		{"bytes of no encoding", func(int64) string { return "\xff\xfe\x00" }, unanswered("malformed||1")},
		{"a member is missing", func(d int64) string { return event(d, "e", `"userId":42`) }, rejected("malformed|e|1")},
		{"two ids", func(d int64) string { return event(d, "e", `"closeEventId":"f"`, items()) }, unanswered("malformed||1")},
		{"another cabinet's", func(d int64) string { return event(d+1, "e", items(7, 1)) }, unanswered("identity_mismatch|e|1")},
		{"another cabinet's and malformed", func(d int64) string { return event(d+1, "e") }, unanswered("identity_mismatch|e|1")},
		{"too many items", func(d int64) string {
			return event(d, "e", `"items":[`+strings.Repeat(`{"productId":7,"quantity":1},`, 299)+`{"productId":7,"quantity":1}]`)
		}, rejected("malformed|e|1")},
		{"too large, with an id", func(d int64) string { return event(d, "e", big, items(7, 1)) }, rejected("malformed|e|1")},
		{"too large, without an id", func(int64) string { return "{" + big }, unanswered("malformed||1")},
	}
	for i, c := range cases {
		device := int64(2000 + 10*i)
		s.cabinet(device)
		answer := s.settle(device, c.payload(device))[0]
		if diff := cmp.Diff(c.want, s.kept(device, answer)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
	if n := s.metric("doortab_dead_letters_total", settlement.LetterIdentityMismatch); n != 2 {
		t.Errorf("%v identity mismatches counted, want 2", n)
	}
}

func TestAnOversizeMessageKeepsItsBeginningSizeAndDigest(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001)
	whole := []byte(event(1001, "e", items(), `"note":"`+strings.Repeat("x", 1<<20)+`"`))
	sum := fmt.Sprintf("%X", sha256.Sum256(whole))
	d := deliveriesOf(1001, string(whole))[0]
	cutByTheWire := settlement.Delivery{
		DeviceID: 1001, Topic: d.Topic, Payload: whole[:cabinet.MaxPayload], Size: len(whole), Digest: sha256.Sum256(whole), ReceivedAt: receivedAt,
	}
	answers := s.Settle(t.Context(), []settlement.Delivery{d, d.Cut(), cutByTheWire})
	if got := []string{receiptText(answers[0]), receiptText(answers[1]), receiptText(answers[2])}; !cmp.Equal(got, []string{
		"rejected [] 0", "rejected [] 0", "none", // nobody read the third one's id in time
	}) {
		t.Error(got)
	}
	want := []string{fmt.Sprintf("%d|%d|%s|3", cabinet.MaxPayload, len(whole), sum)}
	if diff := cmp.Diff(want, s.rows("SELECT LENGTH(payload), size, HEX(digest), copies FROM dead_letters")); diff != "" {
		t.Error(diff)
	}
}

func TestATopicThatNoColumnTakes(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	long := "v1/cabinets/" + strings.Repeat("é", 400) + "\xff/door-closed"
	answer := s.Settle(t.Context(), []settlement.Delivery{{Topic: long, ReceivedAt: receivedAt}})[0]
	if answer.Err != nil || answer.Receipt != nil {
		t.Fatalf("receipt %v, error %v; want a dead letter without an answer", answer.Receipt, answer.Err)
	}
	if got := s.rows("SELECT CHAR_LENGTH(topic), size FROM dead_letters"); !cmp.Equal(got, []string{"255|0"}) {
		t.Error(got)
	}
}

func TestAnUnknownCabinetsEventSettlesOnceItIsKnown(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	payload := sale(1001, "e", 7, 1)
	for range 2 {
		if r := s.receipts(1001, payload, payload); r[0].Outcome != cabinet.Rejected || r[0].Duplicate || r[1].Duplicate {
			t.Fatalf("want two that are rejected and no duplicates: %+v", r)
		}
	}
	if got := s.rows("SELECT reason, copies FROM dead_letters"); !cmp.Equal(got, []string{"unknown_cabinet|4"}) {
		t.Error(got)
	}
	if n := s.count("settlements", "1"); n != 0 {
		t.Errorf("%d settlements of an unknown cabinet", n)
	}
	s.cabinet(1001, 7, 5)
	if r := s.receipts(1001, payload)[0]; r.Outcome != cabinet.Settled || r.Duplicate {
		t.Errorf("once the cabinet is known: %+v", r)
	}
	s.audited()
}

func TestThePriceIsTheOneInForceWhenTheEventCame(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.cabinet(1001, 7, 5)
	s.catalogue("INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (7, ?, 600), (7, ?, 700)", receivedAt, receivedAt.Add(1e6))
	if r := s.receipts(1001, event(1001, "e", `"userId":42`, `"items":[{"productId":7,"quantity":2,"price":1}]`))[0]; r.TotalMinor != 1200 {
		t.Errorf("total %d, want 1200", r.TotalMinor)
	}
}
