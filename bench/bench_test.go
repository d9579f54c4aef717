package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"doortab/services/servicestest"
)

// smallLab is a Lab of sizes that take no time worth the name.
func smallLab(t *testing.T) *Lab {
	t.Helper()
	var progress strings.Builder
	lab := newLab(Options{Quick: true, Progress: &progress})
	lab.sizes = sizes{
		cabinets: 20, window: 64, slices: 2, slice: 200 * time.Millisecond, search: 5 * time.Millisecond, probes: 40,
		grown: 50, pastOfEach: 20, crowd: 600, scripts: 500,
		behind: behind{outstanding: 50, strolls: 2, strollEvents: 20, backlog: 200, known: 300, connected: 300, idle: 10 * time.Millisecond},
	}
	lab.server = *servicestest.Small()
	if err := lab.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.close(context.Background()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(progress.String())
		}
	})
	return lab
}

func TestEveryPartMeasuresBothDesigns(t *testing.T) {
	t.Parallel()
	lab := smallLab(t)
	lab.program = doortab(t)
	for _, p := range parts {
		f, err := p.run(t.Context(), lab)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		if f.Doortab <= 0 || f.Usual <= 0 || f.Ratio <= 0 || f.Unit == "" {
			t.Errorf("%s: figures are missing in %+v", p.name, f)
		}
		for _, g := range p.goals {
			if g.value(f) <= 0 {
				t.Errorf("%s: no value for %q in %+v", p.name, g.label, f)
			}
		}
	}
}

func TestRunNamesThePartsThereAreWhereOneDoesNotExist(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Options{Parts: []string{"settle", "no-such"}})
	if err == nil || !strings.Contains(err.Error(), `no part "no-such": there are settle, hot,`) {
		t.Error(err)
	}
}

func TestPartsRunInTheirOwnOrderWhateverTheOrderTheyAreNamedIn(t *testing.T) {
	t.Parallel()
	chosen, err := choose([]string{"hot", "settle"})
	if err != nil || len(chosen) != 2 || chosen[0].name != "settle" || chosen[1].name != "hot" {
		t.Errorf("chose %v, %v", chosen, err)
	}
	if all, err := choose(nil); err != nil || len(all) != len(parts) {
		t.Errorf("chose %v, %v", all, err)
	}
}

// watcher ends a run when the progress says a word.
type watcher struct {
	text strings.Builder
	word string
	stop func()
}

func (w *watcher) Write(p []byte) (int, error) {
	w.text.Write(p)
	if strings.Contains(w.text.String(), w.word) {
		w.stop()
	}
	return len(p), nil
}

func TestARunThatIsInterruptedEndsWithItsServices(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"starting private", "filling", "turn 1"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			_, err := Run(ctx, Options{Parts: []string{"settle"}, Quick: true, Seconds: 3, Progress: &watcher{word: word, stop: stop}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		})
	}
}
