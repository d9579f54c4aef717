package settlement_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/settlement"
)

// sequenced is a process whose log can be read.
type sequenced struct {
	*shop
	log bytes.Buffer
}

func newSequenced(s *shop) *sequenced {
	q := &sequenced{shop: s}
	q.metrics = prometheus.NewRegistry()
	q.Service = settlement.New(settlement.Config{
		DB: s.db, Currency: "CNY", Metrics: q.metrics, Logger: slog.New(slog.NewTextHandler(&q.log, nil)),
	})
	return q
}

// newSequence is one with cabinet 1001.
func newSequence(t *testing.T) *sequenced {
	t.Helper()
	s := newShop(t)
	s.cabinet(1001)
	return newSequenced(s)
}

// seqs settles a group of empty doors with these numbers, received now.
func (s *sequenced) seqs(seq ...int) {
	s.t.Helper()
	var group []settlement.Delivery
	for _, n := range seq {
		list := deliveriesOf(1001, event(1001, fmt.Sprint("e", n), items(), fmt.Sprintf(`"seq":%d`, n)))
		list[0].ReceivedAt = database.Now()
		group = append(group, list...)
	}
	for _, a := range s.Settle(context.Background(), group) {
		if a.Err != nil {
			s.t.Error(a.Err)
		}
	}
}

var toldGap = regexp.MustCompile(`are missing.*first=(\d+) last=(\d+)`)

// told looks for gaps as of a time from now, and lists all that were ever told.
func (s *sequenced) told(in time.Duration) (list []string) {
	s.t.Helper()
	s.TellGaps(s.t.Context(), database.Now().Add(in))
	for _, m := range toldGap.FindAllStringSubmatch(s.log.String(), -1) {
		list = append(list, m[1]+"-"+m[2])
	}
	return list
}

const enough = settlement.DefaultGapPatience + time.Second

func TestOnlyWhatStaysMissingIsToldAsAGap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		groups [][]int
		want   []string
	}{
		"in order":                      {[][]int{{918}, {919, 920}, {921}}, nil},
		"below the first":               {[][]int{{918}, {910}}, nil},
		"one overtaken":                 {[][]int{{1}, {3}, {2}}, nil},
		"one overtaken in its group":    {[][]int{{1, 3, 2, 4}}, nil},
		"one missing":                   {[][]int{{1}, {3}, {4}}, []string{"2-2"}},
		"three missing, one comes":      {[][]int{{1}, {5}, {3}}, []string{"2-2", "4-4"}},
		"the first of them comes":       {[][]int{{1}, {5}, {2}}, []string{"3-4"}},
		"the last of them comes":        {[][]int{{1}, {5}, {4}}, []string{"2-3"}},
		"two gaps":                      {[][]int{{1}, {3, 6}}, []string{"2-2", "4-5"}},
		"as far ahead as is adopted":    {[][]int{{923}, {10_923}}, []string{"924-10922"}},
		"a jump, which is told at once": {[][]int{{923}, {10_924}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSequence(t)
			for _, group := range c.groups {
				s.seqs(group...)
			}
			if got := s.told(0); len(got) != 0 {
				t.Errorf("told at once: %v", got)
			}
			for range 2 { // once is enough
				if diff := cmp.Diff(c.want, s.told(enough)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestSequences(t *testing.T) {
	t.Parallel()
	s := newSequence(t)
	want := func(last string, gaps, jumps float64) {
		t.Helper()
		s.TellGaps(t.Context(), database.Now().Add(enough))
		got := s.rows("SELECT last_seq FROM cabinet_sequences")
		g, j := s.metric("doortab_sequence_gaps_total", ""), s.metric("doortab_sequence_jumps_total", "")
		if !cmp.Equal(got, []string{last}) || g != gaps || j != jumps {
			t.Errorf("last %v, %v gaps, %v jumps; want %s, %v, %v", got, g, j, last, gaps, jumps)
		}
	}
	for _, step := range []struct {
		seqs        []int
		last        string
		gaps, jumps float64
	}{
		{[]int{918}, "918", 0, 0}, {[]int{919, 920}, "920", 0, 0}, {[]int{915}, "920", 0, 0}, {[]int{923}, "923", 1, 0},
		{[]int{923 + 10_001}, "923", 1, 1}, {[]int{923 + 10_000}, "10923", 2, 1},
	} {
		s.seqs(step.seqs...)
		want(step.last, step.gaps, step.jumps)
	}
}

// TestProcessesThatOvertakeEachOtherTellNoGap: each settles half of a cabinet's events, and one of them never comes.
func TestProcessesThatOvertakeEachOtherTellNoGap(t *testing.T) {
	t.Parallel()
	first := newSequence(t)
	first.seqs(1)
	second := newSequenced(first.another(nil))
	var wait sync.WaitGroup
	for n, s := range []*sequenced{first, second} {
		wait.Go(func() {
			for seq := 2 + n; seq <= 60; seq += 2 {
				if seq != 31 {
					s.seqs(seq)
				}
			}
		})
	}
	wait.Wait()
	told := 0.0
	for _, s := range []*sequenced{first, second} {
		s.TellGaps(t.Context(), database.Now().Add(enough))
		told += s.metric("doortab_sequence_gaps_total", "")
	}
	if told < 1 || told > 2 {
		t.Errorf("%v gaps are told, of one event that is missing", told)
	}
}

// TestAReplacedControllersGapsAreItsOwn: the same numbers in another epoch make nothing good.
func TestAReplacedControllersGapsAreItsOwn(t *testing.T) {
	t.Parallel()
	s := newSequence(t)
	s.seqs(1, 3)
	s.replaceController(1001)
	list := deliveriesOf(1001, event(1001, "new1", items(), `"seq":1`), event(1001, "new2", items(), `"seq":2`), event(1001, "new5", items(), `"seq":5`))
	for i := range list {
		list[i].ReceivedAt = database.Now()
	}
	s.Settle(t.Context(), list)
	got := s.told(enough)
	slices.Sort(got)
	if diff := cmp.Diff([]string{"2-2", "3-4"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestGapsWaitForTheDatabase: what can't be looked up is not forgotten.
func TestGapsWaitForTheDatabase(t *testing.T) {
	t.Parallel()
	s := newSequence(t)
	s.seqs(1, 3)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	s.TellGaps(cancelled, database.Now().Add(enough))
	if s.log.Len() != 0 {
		t.Errorf("log: %s", s.log.String())
	}
	if diff := cmp.Diff([]string{"2-2"}, s.told(enough)); diff != "" {
		t.Error(diff)
	}
}

func TestWatchGapsTellsAndEnds(t *testing.T) {
	t.Parallel()
	s := newSequence(t)
	heard := make(chan struct{}, 1)
	s.Service = settlement.New(settlement.Config{
		DB: databasetest.Open(t, s.dsn), Currency: "CNY", GapPatience: 50 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(hearing(heard), nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { s.WatchGaps(ctx) })
	s.seqs(1, 3)
	select {
	case <-heard:
	case <-time.After(20 * time.Second):
		t.Error("no gap is told")
	}
	cancel()
	within(t, 10*time.Second, "an end", wait.Wait)
}

// hearing tells of a line about a gap.
type hearing chan struct{}

func (h hearing) Write(line []byte) (int, error) {
	if toldGap.Match(line) {
		select {
		case h <- struct{}{}:
		default:
		}
	}
	return len(line), nil
}
