package simulator

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"doortab/cabinet"
)

func receipt(t *testing.T, r cabinet.Receipt) []byte {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func settledReceipt() cabinet.Receipt {
	return cabinet.Receipt{
		CloseEventID: "e1", DeviceID: 1001, Outcome: cabinet.Settled, OrderID: "77", Currency: "CNY", TotalMinor: 1000,
		Lines: []cabinet.Line{{ProductID: 7, Quantity: 2, UnitPriceMinor: 500, AmountMinor: 1000}},
	}
}

func oneEvent() (*books, eventKey) {
	b := newBooks()
	key := eventKey{1001, "e1"}
	b.open(&entry{key: key, userID: 5, truth: []quantity{{7, 2}}})
	return b, key
}

func TestRepeatedReceiptsMayDifferInDuplicateAlone(t *testing.T) {
	t.Parallel()
	b, key := oneEvent()
	first := settledReceipt()
	again := first
	again.Duplicate = true
	for _, r := range []cabinet.Receipt{first, again, first} {
		if id, conflict := b.note(1001, receipt(t, r), noon); id != "e1" || conflict {
			t.Fatalf("answers %q, conflict %v; want e1", id, conflict)
		}
	}
	if e := b.events[key]; e.contradict != "" {
		t.Errorf("no contradiction, yet %q", e.contradict)
	}
	if want := (counts{published: 1, settled: 1, duplicates: 1, receipts: 3}); b.sofar() != want {
		t.Errorf("counted %+v, want %+v", b.sofar(), want)
	}
	again.OrderID = "78"
	b.note(1001, receipt(t, again), noon)
	if e := b.events[key]; !strings.Contains(e.contradict, `"78"`) {
		t.Errorf("another order in the second receipt isn't noticed: %q", e.contradict)
	}
}

func TestAConflictAnswersOnlyOtherContent(t *testing.T) {
	t.Parallel()
	b, key := oneEvent()
	conflict := cabinet.Receipt{CloseEventID: "e1", DeviceID: 1001, Outcome: cabinet.Conflict}
	b.note(1001, receipt(t, settledReceipt()), noon)
	b.change(key)
	if id, answers := b.note(1001, receipt(t, conflict), noon); id != "e1" || !answers || !b.events[key].conflicted {
		t.Errorf("answers %q, conflict %v", id, answers)
	}
	if b.events[key].contradict != "" {
		t.Error("the conflict isn't a second outcome of the event")
	}
	b, key = oneEvent()
	b.note(1001, receipt(t, conflict), noon)
	if e := b.events[key]; e.outcome != cabinet.Conflict {
		t.Errorf("a conflict for an event of one content is its (wrong) outcome, got %q", e.outcome)
	}
}

func TestReceiptsThatNoEventExplains(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		receipt cabinet.Receipt
		strange bool
	}{
		"unknown event":        {cabinet.Receipt{CloseEventID: "e9", DeviceID: 1001, Outcome: cabinet.Settled}, true},
		"other cabinet":        {cabinet.Receipt{CloseEventID: "e1", DeviceID: 1002, Outcome: cabinet.Settled}, true},
		"rejection of rubbish": {cabinet.Receipt{CloseEventID: "e1-garbage", DeviceID: 1001, Outcome: cabinet.Rejected}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := oneEvent()
			id, _ := b.note(1001, receipt(t, tt.receipt), time.Now())
			if _, strange := b.all(); id != "" || len(strange) > 0 != tt.strange {
				t.Errorf("answers %q, strange %q", id, strange)
			}
		})
	}
}

func TestWhatWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	b, key := oneEvent()
	if _, ok := b.nextDoubt(); ok {
		t.Fatal("an event without a receipt waits")
	}
	r := settledReceipt()
	r.Outcome, r.Reasons = cabinet.Review, []cabinet.Reason{cabinet.ReasonUnattributed, cabinet.ReasonClockSkew}
	b.note(1001, receipt(t, r), noon)
	b.note(1001, receipt(t, r), noon)
	b.change(key)
	conflict := cabinet.Receipt{CloseEventID: "e1", DeviceID: 1001, Outcome: cabinet.Conflict}
	b.note(1001, receipt(t, conflict), noon)
	b.note(1001, receipt(t, conflict), noon)
	waiting := 0
	for {
		e, ok := b.nextDoubt()
		if !ok {
			break
		}
		waiting++
		if e.key != key || !e.unattributed {
			t.Errorf("%+v waits", e)
		}
	}
	if waiting != 2 {
		t.Errorf("%d wait, want the review and the conflict, each once", waiting)
	}
}
