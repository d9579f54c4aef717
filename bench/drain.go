package bench

import (
	"context"
	"time"

	"doortab/bench/load"
)

func measureDrain(ctx context.Context, l *Lab) (Figure, error) {
	w, err := l.newWire(ctx, l.cabinets)
	if err != nil {
		return Figure{}, err
	}
	f, err := w.measureDrain(ctx)
	return f, w.end(ctx, err)
}

func (w *wire) measureDrain(ctx context.Context) (Figure, error) {
	if err := w.chooseCrew(ctx); err != nil {
		return Figure{}, err
	}
	w.resend = backlogResend
	doortab, err := w.drain(ctx, w.doortab, w.events, w.lab.backlog)
	if err != nil {
		return Figure{}, err
	}
	w.lab.say("doortab answered %d events at %.0f/s", w.lab.backlog, doortab.perSecond)
	usual, err := w.drain(ctx, w.usual, w.same, w.lab.backlog/usualShare)
	if err != nil {
		return Figure{}, err
	}
	f := newFigure(doortab.perSecond, usual.perSecond, "receipts/s")
	f.Details = map[string]float64{
		"doortab_events": float64(w.lab.backlog), "doortab_seconds": doortab.seconds, "doortab_peak_mib": doortab.peakMiB,
		"doortab_resent": float64(doortab.resent),
		"usual_events":   float64(w.lab.backlog / usualShare), "usual_seconds": usual.seconds, "usual_peak_mib": usual.peakMiB,
		"usual_workers": float64(w.rival.workers),
	}
	return f, nil
}

// backlogResend is how long a cabinet waits that has published an event in vain for hours.
const backlogResend = 5 * time.Minute

// usualShare is which part of the backlog the usual design gets: its rate doesn't depend on it, and somebody waits.
const usualShare = 10

// drained is what a backlog gave.
type drained struct {
	perSecond, seconds, peakMiB float64
	resent                      int
}

// drain has a process answer a backlog that meets it while it runs idle.
func (w *wire) drain(ctx context.Context, start worker, events *stream, backlog int) (d drained, err error) {
	err = w.run(ctx, start, 1, events.publication, func(fleet *load.Load, crew []*process) error {
		begin := time.Now()
		if err := fleet.Backlog(ctx, backlog); err != nil {
			return err
		}
		d.seconds = time.Since(begin).Seconds()
		d.perSecond, d.resent = float64(backlog)/d.seconds, fleet.Counts().Resent
		_, most, err := crew[0].resident()
		d.peakMiB = mib(most)
		return err
	})
	return d, err
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
