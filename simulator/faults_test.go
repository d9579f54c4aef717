package simulator

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"doortab/cabinet"
)

func draws(level int, seed uint64, n int, happened func(Fault) bool) (list []Fault) {
	p := newPlan(level, seed)
	for range n {
		list = append(list, p.next(happened))
	}
	return list
}

func always(Fault) bool { return true }

func TestEveryKindComesEarly(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		seen := map[Fault]bool{}
		p := newPlan(1, seed)
		for range 2 * len(doorFaults()) {
			seen[p.next(func(f Fault) bool { return seen[f] })] = true
		}
		for _, f := range doorFaults() {
			if !seen[f] {
				t.Errorf("seed %d: %s didn't come in the first %d events", seed, f, 2*len(doorFaults()))
			}
		}
	}
}

func TestAKindThatCouldNotHappenIsTriedAgain(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, f := range draws(1, 3, 10*len(doorFaults()), func(f Fault) bool { return f != Simultaneous }) {
		if f == Simultaneous {
			tried++
		}
	}
	if tried < 5 {
		t.Errorf("tried %d times in %d events, want every round", tried, 10*len(doorFaults()))
	}
}

func TestFaultsGrowWithTheLevel(t *testing.T) {
	t.Parallel()
	before := -1
	for level := range 5 {
		n := 0
		for _, f := range draws(level, 11, 4000, always) {
			if f != none {
				n++
			}
		}
		if n <= before || level == 0 && n > 0 || level == 1 && (n < 300 || n > 500) {
			t.Errorf("level %d: %d faults in 4000 events, %d at the level below", level, n, before)
		}
		before = n
	}
}

func TestFaultsRepeatWithTheSeed(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(draws(2, 5, 500, always), draws(2, 5, 500, always)); diff != "" {
		t.Errorf("the same seed, other faults (-first +second):\n%s", diff)
	}
}

func someReports(n int, closedAt time.Time) (list []*report) {
	for i := range n {
		r := &report{
			CloseEventID: "sim-x-" + string(rune('a'+i)), DeviceID: 1001, Kind: cabinet.KindSale, UserID: 5, Seq: int64(i + 1),
			BootID: "sim-x", OpenedAt: closedAt.Add(-9 * time.Second), ClosedAt: closedAt,
		}
		r.see(&cabinet.Event{HasItems: true, Items: []cabinet.Item{
			{ProductID: 1, Quantity: 2, Confidence: 0.97}, {ProductID: 2, Quantity: 1, Confidence: 0.97},
		}})
		r.imagine(3)
		r.imagine(2)
		list = append(list, r)
	}
	return list
}

func TestEventsAreWhatDoortabReads(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 10, 0, 21, 480_000_000, time.UTC)
	r := someReports(1, now)[0]
	got, err := cabinet.Decode(r.payload())
	if err != nil {
		t.Fatal(err)
	}
	want := &cabinet.Event{
		CloseEventID: "sim-x-a", DeviceID: 1001, Kind: cabinet.KindSale, UserID: 5, Seq: 1, HasSeq: true, BootID: "sim-x",
		OpenedAt: now.Add(-9 * time.Second), ClosedAt: now, HasItems: true,
		Items: []cabinet.Item{{ProductID: 1, Quantity: 2, Confidence: 0.97}, {ProductID: 2, Quantity: 1, Confidence: 0.97},
			{ProductID: 3, Quantity: 1, Confidence: doubtfulCount}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]quantity{{1, 2}, {2, 1}}, r.sure()); diff != "" || r.expected() != cabinet.Review {
		t.Errorf("sure (-want +got), and it must become %s:\n%s", r.expected(), diff)
	}
}

// What scales and antennas see reaches Doortab as it is, also where nothing was seen.
func TestSensorsAreWhatDoortabReads(t *testing.T) {
	t.Parallel()
	tests := map[string]cabinet.Event{
		"nothing counted": {HasItems: true},
		"scales":          {HasWeights: true, Weights: []cabinet.Weight{{Lane: 1, BeforeGrams: 690, AfterGrams: 345}, {Lane: 2}}},
		"no tag left":     {HasRFID: true, RFID: cabinet.RFID{Before: []string{"3036142C8C008F8000053244"}}},
		"both": {
			HasWeights: true, Weights: []cabinet.Weight{{Lane: 1, BeforeGrams: 345}}, HasRFID: true,
			RFID: cabinet.RFID{Before: []string{"3036142C8C008F8000053244", "3036142C8C008F8000053245"}, After: []string{"3036142C8C008F8000053244"}},
		},
	}
	for name, seen := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &report{CloseEventID: "e", DeviceID: 1001, Kind: cabinet.KindSale, ClosedAt: noon}
			r.see(&seen)
			got, err := cabinet.Decode(r.payload())
			if err != nil {
				t.Fatal(err)
			}
			sensors := cabinet.Event{
				HasItems: got.HasItems, HasWeights: got.HasWeights, HasRFID: got.HasRFID, Items: got.Items, Weights: got.Weights, RFID: got.RFID,
			}
			if diff := cmp.Diff(seen, sensors, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
			other, ok := r.changed()
			if ok == (name == "nothing counted" || name == "no tag left") {
				t.Fatalf("it was changed: %t", ok)
			}
			if decoded, err := cabinet.Decode(other.payload()); err != nil || ok == (decoded.Digest() == got.Digest()) {
				t.Errorf("the changed body is no other content under the same id: %+v, %v", decoded, err)
			}
		})
	}
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	tests := []struct {
		fault  Fault
		counts int // messages that carry the fault
		check  func(reports []*report, list []*message) bool
	}{
		{none, 0, func(_ []*report, l []*message) bool { return len(l) == 1 && l[0].dueAt.Equal(now) }},
		{Duplicate, 1, func(_ []*report, l []*message) bool {
			return len(l) == 2 && l[1].id == "" && bytes.Equal(l[0].payload, l[1].payload)
		}},
		{Simultaneous, 1, func(_ []*report, l []*message) bool { return len(l) == 1 && l[0].fault == Simultaneous }},
		{Dropped, 1, func(_ []*report, l []*message) bool { return len(l) == 1 && l[0].fault == Dropped }},
		{Reordered, 1, func(_ []*report, l []*message) bool { return len(l) == 2 && l[0].dueAt.After(l[1].dueAt) }},
		{Delayed, 1, func(_ []*report, l []*message) bool { return !l[0].dueAt.Before(now.Add(time.Second)) }},
		{Garbage, 1, func(_ []*report, l []*message) bool { return len(l) == 2 && l[1].id == "" }},
		{Changed, 0, func(_ []*report, l []*message) bool {
			then := l[0].then
			return then.changed && then.id == l[0].id && then.fault == Changed && !bytes.Equal(then.payload, l[0].payload)
		}},
		{LateBurst, 1, func(r []*report, l []*message) bool {
			return len(l) >= 3 && len(l) == len(r) && l[0].dueAt.After(now) && l[0].dueAt.Equal(l[len(l)-1].dueAt)
		}},
		{Clock1970, 1, func(r []*report, _ []*message) bool { return r[0].ClosedAt.Year() == 1970 }},
		{Clock2099, 1, func(r []*report, _ []*message) bool { return r[0].ClosedAt.Year() == 2099 }},
	}
	for _, tt := range tests {
		t.Run(string("fault "+tt.fault), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, 2))
			reports := someReports(visitsOf(tt.fault, rng), now)
			list := deliver(tt.fault, reports, now, rng)
			counted := 0
			for _, m := range list {
				if m.fault == tt.fault && m.fault != none {
					counted++
				}
			}
			if counted != tt.counts || !tt.check(reports, list) {
				t.Errorf("%d messages carry it, want %d; messages: %s", counted, tt.counts, describe(list))
			}
			if took := reports[0].ClosedAt.Sub(reports[0].OpenedAt); took != 9*time.Second {
				t.Errorf("the door was open for %s, want 9 s", took)
			}
		})
	}
}

func describe(list []*message) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.dueAt.Format(time.TimeOnly) + " " + string(m.fault) + " " + string(m.payload) + "\n")
	}
	return b.String()
}

func TestGarbageIsNeverAnEventOfTheCabinet(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	shapes := map[string]bool{}
	for range 100 {
		r := someReports(1, noon)[0]
		payload := garbage(r, rng)
		event, err := cabinet.Decode(payload)
		if err == nil && event.DeviceID == r.DeviceID {
			t.Fatalf("an event of the cabinet: %s", payload)
		}
		if err == nil && event.CloseEventID == r.CloseEventID {
			t.Fatalf("has the id of a true event: %s", payload)
		}
		shapes[string(payload[:1])+string(rune(len(payload)))] = true
	}
	if len(shapes) != 5 {
		t.Errorf("%d shapes of garbage, want 5", len(shapes))
	}
}
