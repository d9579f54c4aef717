package settlement_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"doortab/cabinet"
	"doortab/settlement"
)

// at settles one event that was received so many seconds after the first ones.
func (s *shop) at(seconds int, payload string) cabinet.Receipt {
	s.t.Helper()
	deliveries := deliveriesOf(1001, payload)
	deliveries[0].ReceivedAt = receivedAt.Add(time.Duration(seconds) * time.Second)
	answer := s.Settle(context.Background(), deliveries)[0]
	if answer.Err != nil {
		s.t.Fatal(answer.Err)
	}
	return *answer.Receipt
}

func (s *shop) decideOn(id string, decision settlement.Decision) {
	s.t.Helper()
	if _, err := s.decide(s.review(1001, id).ReviewID, decision); err != nil {
		s.t.Fatal(err)
	}
}

// outcomeOf writes a receipt shortly: "settled 7x1", "review epc_already_sold".
func outcomeOf(r cabinet.Receipt) string {
	text := string(r.Outcome)
	for _, l := range r.Lines {
		text += fmt.Sprintf(" %dx%d", l.ProductID, l.Quantity)
	}
	for _, reason := range r.Reasons {
		text += " " + string(reason)
	}
	return text
}

// Events e of cabinet 1001 that were received after later ones, or settled after ones received later. In cabinet 1001 are tags
// A and B, which event "in" brought.
var lateDoors = map[string]struct {
	late   func(s *shop) cabinet.Receipt
	want   string
	places string
}{
	"the tag that was sold since was still there": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", tagA, "", seq(9)))
			return s.receipts(1001, shopper("e", tagA+" "+tagB, tagA, seq(8)))[0]
		},
		want: "settled 7x1", places: "44 sold 1001 x order x, 45 sold 1001 e order e",
	},
	"in one group": {
		late: func(s *shop) cabinet.Receipt {
			return s.receipts(1001, shopper("x", tagA, "", seq(9)), shopper("e", tagA+" "+tagB, tagA, seq(8)))[1]
		},
		want: "settled 7x1", places: "44 sold 1001 x order x, 45 sold 1001 e order e",
	},
	"nothing was taken": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", tagA, "", seq(9)))
			return s.receipts(1001, shopper("e", tagA+" "+tagB, tagA+" "+tagB, seq(8)))[0]
		},
		want: "empty", places: "44 sold 1001 x order x, 45 in_cabinet 1001 in",
	},
	"both claim the same tag": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", tagA, "", seq(9)))
			return s.receipts(1001, shopper("e", tagA+" "+tagB, tagB, seq(8)))[0]
		},
		want: "review epc_already_sold", places: "44 sold 1001 x order x, 45 in_cabinet 1001 in",
	},
	"a later door saw what it took": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", "", tagA, seq(9)))
			return s.receipts(1001, shopper("e", tagA+" "+tagB, tagB, seq(8)))[0]
		},
		want: "review evidence_disagrees", places: "44 in_cabinet 1001 x, 45 in_cabinet 1001 in",
	},
	"not late: the tag is back": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", tagA, "", seq(8)))
			return s.receipts(1001, shopper("e", tagA+" "+tagB, tagA, seq(9)))[0]
		},
		want: "review 7x1 epc_already_sold", places: "44 in_cabinet 1001 e, 45 sold 1001 e order e",
	},
	"a replaced controller starts a new sequence": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", tagA, "", seq(9)))
			s.replaceController(1001)
			return s.receipts(1001, shopper("e", tagA+" "+tagB, tagA+" "+tagB, seq(1)))[0]
		},
		want: "review epc_already_sold", places: "44 in_cabinet 1001 e, 45 in_cabinet 1001 in",
	},
	"without seq, received before": {
		late: func(s *shop) cabinet.Receipt {
			s.at(60, shopper("x", tagA, ""))
			return s.at(30, shopper("e", tagA+" "+tagB, tagA))
		},
		want: "settled 7x1", places: "44 sold 1001 x order x, 45 sold 1001 e order e",
	},
	"without seq, received later": {
		late: func(s *shop) cabinet.Receipt {
			s.at(30, shopper("x", tagA, ""))
			return s.at(60, shopper("e", tagA+" "+tagB, tagA+" "+tagB))
		},
		want: "review epc_already_sold", places: "44 in_cabinet 1001 e, 45 in_cabinet 1001 in",
	},
	"seq tells, and not when they were received": {
		late: func(s *shop) cabinet.Receipt {
			s.at(30, shopper("x", tagA, "", seq(9)))
			return s.at(60, shopper("e", tagA+" "+tagB, tagA, seq(8)))
		},
		want: "settled 7x1", places: "44 sold 1001 x order x, 45 sold 1001 e order e",
	},
	"sold in another cabinet since": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1002, event(1002, "in2", `"kind":"restock"`, rfid("", tagC)), event(1002, "x", `"userId":42`, rfid(tagC, "")))
			s.exec("UPDATE settlements SET received_at = ? WHERE close_event_id = 'x'", receivedAt.Add(time.Minute))
			return s.at(30, shopper("e", tagB+" "+tagC, tagC))
		},
		want: "settled 7x1", places: "43 sold 1002 x order x, 44 in_cabinet 1001 in, 45 sold 1001 e order e",
	},
	"in another cabinet since": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1002, event(1002, "x", `"kind":"restock"`, rfid("", tagC)))
			s.exec("UPDATE settlements SET received_at = ? WHERE close_event_id = 'x'", receivedAt.Add(time.Minute))
			return s.at(30, shopper("e", tagB, tagC))
		},
		want: "settled 7x1", places: "43 in_cabinet 1002 x, 44 in_cabinet 1001 in, 45 sold 1001 e order e",
	},
	"thrown away since": {
		late: func(s *shop) cabinet.Receipt {
			s.throwAway(1001, tagA)
			s.exec("UPDATE epcs SET close_event_id = 'writeoff', updated_at = ? WHERE epc = ?", receivedAt.Add(time.Minute), tagA)
			return s.at(30, shopper("e", tagB, tagA))
		},
		want: "settled 7x1", places: "44 lost 1001 writeoff, 45 sold 1001 e order e",
	},
	"carried out by staff since": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, staff("x", tagA+" "+tagB, tagB, seq(9)))
			return s.receipts(1001, shopper("e", tagB, tagA, seq(8)))[0]
		},
		want: "settled 7x1", places: "44 lost 1001 x, 45 sold 1001 e order e",
	},
	"staff brought what was sold since": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", tagC, "", seq(9)))
			s.decideOn("x", settlement.Accept)
			return s.receipts(1001, staff("e", tagA+" "+tagB, tagA+" "+tagB+" "+tagC, seq(8)))[0]
		},
		want: "restocked 7x1", places: "43 sold 1001 x order x, 44 in_cabinet 1001 in, 45 in_cabinet 1001 in",
	},
	"staff brought what was lost since": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", tagC, "", seq(9)))
			s.decideOn("x", settlement.Waive)
			return s.receipts(1001, staff("e", tagA+" "+tagB, tagA+" "+tagB+" "+tagC, seq(8)))[0]
		},
		want: "restocked 7x1", places: "43 lost 1001 x, 44 in_cabinet 1001 in, 45 in_cabinet 1001 in",
	},
	"staff brought what waits for a person since": {
		late: func(s *shop) cabinet.Receipt {
			s.receipts(1001, shopper("x", tagC, "", seq(9)))
			r := s.receipts(1001, staff("e", tagA+" "+tagB, tagA+" "+tagB+" "+tagC, seq(8)))[0]
			s.decideOn("x", settlement.Accept)
			return r
		},
		want: "restocked 7x1", places: "43 sold 1001 x order x, 44 in_cabinet 1001 in, 45 in_cabinet 1001 in",
	},
}

// TestALateDoorSaysNothingOfWhatCameAfterIt: a tag stays where a later door put it, and a person is asked only what can't both
// be true.
func TestALateDoorSaysNothingOfWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	for name, c := range lateDoors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := taggedShop(t)
			s.planned(1001)
			s.planned(1002)
			s.receipts(1001, staff("in", "", tagA+" "+tagB, seq(1)))
			got := outcomeOf(c.late(s))
			got += strings.Join(s.rows(`SELECT CONCAT(' ', product_id, 'x', quantity) FROM stock_movements
				WHERE ref = 'e' AND kind = 'restock'`), "")
			if got != c.want {
				t.Errorf("outcome %s, want %s", got, c.want)
			}
			if got := s.places(); got != c.places {
				t.Errorf("places %s\nwant   %s", got, c.places)
			}
			s.audited()
		})
	}
}

// TestATagIsSoldAndBackInWhateverOrderItsDoorsCome: three doors, of which the last saw the tag of the first again.
func TestATagIsSoldAndBackInWhateverOrderItsDoorsCome(t *testing.T) {
	t.Parallel()
	doors := []string{
		shopper("e1", tagA+" "+tagB, tagB, seq(2)), shopper("e2", tagB, "", seq(3)), shopper("e3", tagA, tagA, seq(4)),
	}
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			s := taggedShop(t)
			s.planned(1001)
			s.receipts(1001, staff("in", "", tagA+" "+tagB, seq(1)))
			var got []string
			for _, n := range order {
				got = append(got, fmt.Sprint("e", n+1, " ", outcomeOf(s.receipts(1001, doors[n])[0])))
			}
			text := strings.Join(got, ", ")
			for _, want := range []string{"e1 settled 7x1", "e2 settled 7x1", "e3 review epc_already_sold"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s, want %s", text, want)
				}
			}
			if got, want := s.places(), "44 in_cabinet 1001 e3, 45 sold 1001 e2 order e2"; got != want {
				t.Errorf("places %s, want %s", got, want)
			}
			s.audited()
		})
	}
}
