package simulator

import (
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"doortab/simulator/physical"
)

// lowFleet has empty cabinets with scales, which nobody answers.
func lowFleet(t *testing.T, cabinets int) *Simulator {
	t.Helper()
	s := fleetOf(t, cabinets, 60)
	goods := s.goods()
	goods.Kind = physical.KindWeight
	for _, d := range s.fleet {
		d.goods = physical.NewCabinet(goods, rand.New(rand.NewPCG(1, 2)))
		d.put(nil)
	}
	s.hire()
	return s
}

func TestTheFirstFillingWaitsForReceipts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := lowFleet(t, 2*doorsAtOnce)
		began := time.Now()
		s.staff.stockUp(t.Context())
		if n := s.books.sofar().published; n != doorsAtOnce+1 {
			t.Errorf("%d doors without an answer, want %d", n, doorsAtOnce+1)
		}
		if took := time.Since(began); took < silence || took > 2*silence {
			t.Errorf("it gave up after %s", took)
		}
	})
}

func TestStaffLeaveACabinetThatIsFullOrTaken(t *testing.T) {
	t.Parallel()
	s := lowFleet(t, 1)
	d, rng := s.fleet[0], rand.New(rand.NewPCG(3, 4))
	d.staffed.Lock()
	s.staff.restock(t.Context(), d, "k-1", rng)
	s.staff.count(t.Context(), d, "k-2", rng)
	d.staffed.Unlock()
	s.staff.restock(t.Context(), d, "k-3", rng)
	if n := s.books.sofar().published; n != 1 || d.low.Load() {
		t.Fatalf("%d doors, low %t; want one that filled it up", n, d.low.Load())
	}
	units, seq := d.content()
	for id, n := range units {
		if n != perLane {
			t.Errorf("%d units of product %d, want %d", n, id, perLane)
		}
	}
	d.inUse = time.Time{}
	s.staff.restock(t.Context(), d, "k-4", rng)
	if _, again := d.content(); seq != 1 || again != 1 {
		t.Errorf("seq %d, then %d: a full cabinet was opened", seq, again)
	}
}

func TestStaffDoNotHurryWhereNoAnswerCanBeRead(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text := "nonsense"
		if calls.Add(1) == 3 {
			text = `{"movements":[{"productId":7,"version":2}]}`
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	s := &staff{api: newClient(server.URL, "token", nil), logger: slog.New(slog.DiscardHandler)}
	t.Cleanup(s.api.http.CloseIdleConnections)
	began := time.Now()
	taken := s.hand(t.Context(), paper{deviceID: 1, what: "restock"}, restockCall(1, []quantity{{7, 1}}, "k"))
	if handed := s.handedIn(); !taken || calls.Load() != 3 || len(handed) != 1 || len(handed[0].Movements) != 1 {
		t.Errorf("taken %t after %d calls: %+v", taken, calls.Load(), handed)
	}
	if took := time.Since(began); took < unseenPause {
		t.Errorf("two more tries within %s", took)
	}
}
