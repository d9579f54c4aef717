package bench

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"doortab/audit"
	"doortab/cabinet"
	"doortab/services"
)

func TestLab(t *testing.T) {
	t.Parallel()
	lab := smallLab(t)
	t.Run("the books that it fills and moves pass the audit", func(t *testing.T) {
		d, err := lab.newDuel(t.Context(), newPast(lab.cabinets, 15), lab.cabinets)
		if err != nil {
			t.Fatal(err)
		}
		f, err := d.measureCosts(t.Context(), lab)
		if err != nil {
			t.Fatal(err)
		}
		if f.Details["evidence"] <= 0 || d.acknowledged < int64(lab.probes) {
			t.Errorf("%d events acknowledged, figures %v", d.acknowledged, f.Details)
		}
		wantSound(t, d.product)
		if err := d.end(t.Context(), lab); err != nil {
			t.Error(err)
		}
	})
	t.Run("acknowledged events without a settlement fail the run", func(t *testing.T) {
		p, err := lab.newProduct(t.Context(), newPast(2, 0), false)
		if err != nil {
			t.Fatal(err)
		}
		s := newStream(1, 2, newPast(2, 0))
		events := []*cabinet.Event{s.next(), s.next(), s.next()}
		events[1].UserID = 0 // nobody's: its outcome is a review
		result, err := p.feed(t.Context(), time.Minute, each(events))
		if err != nil || result.all != 3 {
			t.Fatalf("%d acknowledged, %v", result.all, err)
		}
		if err := p.end(t.Context(), lab, result.all); err == nil || !strings.Contains(err.Error(), "acknowledged 3 events and settled 2") {
			t.Error(err)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("it starts a broker for the parts that need one", func(t *testing.T) {
		broker, err := lab.mosquitto(t.Context(), services.MosquittoOptions{})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", broker.Address())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	})
}

func wantSound(t *testing.T, p *product) {
	t.Helper()
	report, err := audit.Run(t.Context(), p.db)
	if err != nil {
		t.Fatal(err)
	}
	if report.OK() {
		return
	}
	var text strings.Builder
	_ = report.Print(&text)
	t.Error(text.String())
}

func TestTwoStreamsOfOneSeedMakeTheSameEvents(t *testing.T) {
	t.Parallel()
	one, other := newStream(7, 5, newPast(1000, 0)), newStream(7, 5, newPast(1000, 0))
	ids := map[string]bool{}
	for range 100 {
		a, b := one.next(), other.next()
		if len(usualEvent(a).Lines) != perEvent {
			t.Fatalf("lines %v", usualEvent(a).Lines)
		}
		ids[a.CloseEventID] = true
		a.CloseEventID, a.ClosedAt = b.CloseEventID, b.ClosedAt
		if a.Digest() != b.Digest() {
			t.Fatalf("%+v and %+v", a, b)
		}
		if !slices.Contains([]int64{1, 200, 399, 598, 797}, a.DeviceID) {
			t.Errorf("cabinet %d", a.DeviceID)
		}
	}
	if len(ids) != 100 {
		t.Errorf("%d different ids of 100 events", len(ids))
	}
}

func TestTagsOfTheCatalogue(t *testing.T) {
	t.Parallel()
	// The design's first test vector is this company's product 574, serial 340548.
	if epc := sgtin96(574, 340548); epc != "3036142C8C008F8000053244" {
		t.Error(epc)
	}
	if gtin := gtin14(574); gtin != "08719139005740" {
		t.Error(gtin)
	}
	tag, ok := cabinet.DecodeSGTIN(sgtin96(40, firstTakenSerial))
	if !ok || tag.GTIN14 != gtin14(40) || tag.Serial != firstTakenSerial {
		t.Errorf("%+v", tag)
	}
}

func TestMedianAndSpreadOfTurns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rates []float64
		want  spread
	}{
		"odd":  {[]float64{5, 1, 3}, spread{3, 1, 5}},
		"even": {[]float64{4, 1, 2, 9}, spread{3, 1, 9}},
		"one":  {[]float64{7}, spread{7, 7, 7}},
	} {
		if got := spreadOf(c.rates); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestProcessorTimeIsReadBehindAnyName(t *testing.T) {
	t.Parallel()
	stat := "42 (maria) db) S 1 42 42 0 -1 4194560 1 0 0 0 150 25 0 0 20 0 1 0 1 1 1"
	if us, err := processorTime(stat); err != nil || us != 1_750_000 {
		t.Errorf("%v µs, %v", us, err)
	}
	if _, err := processorTime("42 (x) S 1 2"); err == nil {
		t.Error("a cut line was read")
	}
}
