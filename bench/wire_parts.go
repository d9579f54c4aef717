package bench

import (
	"context"
	"time"

	"doortab/bench/load"
)

var mqttPart = part{
	name: "mqtt", about: "events of 1000 cabinets from publish to receipt through Mosquitto, each design as a process", run: measureMQTT,
	goals: []goal{
		{label: "mqtt ÷ usual design behind the same consumer", value: byRatio, must: 4, aim: 7},
		{label: "mqtt, two processes ÷ one", value: byDetail("two_processes_ratio"), must: 0.9, aim: 1.2},
		{label: "hot over mqtt, two processes ÷ one", value: byDetail("hot_two_processes_ratio"), must: 0.9, aim: 1.2},
	},
}

var latencyPart = part{
	name: "latency", about: "publish to receipt at 50 events/s, 99 of 100 within", run: measureLatency,
	goals: []goal{{label: "latency p99 ÷ usual design's", value: byRatio, must: 1.1, aim: 0.8, most: true}},
}

var drainPart = part{
	name: "drain", about: "a backlog of events that all cabinets publish at once, until each has its receipt", run: measureDrain,
}

func measureMQTT(ctx context.Context, l *Lab) (Figure, error) {
	w, err := l.newWire(ctx, l.cabinets)
	if err != nil {
		return Figure{}, err
	}
	f, err := w.measureThroughput(ctx)
	return f, w.end(ctx, err)
}

func (w *wire) measureThroughput(ctx context.Context) (Figure, error) {
	if err := w.chooseCrew(ctx); err != nil {
		return Figure{}, err
	}
	hot := w.events.of(hotCabinets)
	costs := make([]wireCosts, 5)
	spreads, err := w.lab.alternate(ctx,
		side{"doortab", w.flood(w.doortab, 1, w.events, &costs[0])}, side{"usual", w.flood(w.usual, 1, w.same, &costs[1])},
		side{"two processes", w.flood(w.doortab, 2, w.events, &costs[2])},
		side{"hot", w.flood(w.doortab, 1, hot, &costs[3])}, side{"hot, two processes", w.flood(w.doortab, 2, hot, &costs[4])})
	if err != nil {
		return Figure{}, err
	}
	f := newFigure(spreads[0].median, spreads[1].median, "receipts/s")
	for i, name := range []string{"doortab", "usual", "two_processes", "hot", "hot_two_processes"} {
		f.Details[name], f.Details[name+"_least"], f.Details[name+"_most"] = spreads[i].median, spreads[i].least, spreads[i].most
		costs[i].perReceipt(f.Details, name)
	}
	f.Details["two_processes_ratio"] = ratio(spreads[2].median, spreads[0].median)
	f.Details["hot_two_processes_ratio"] = ratio(spreads[4].median, spreads[3].median)
	f.Details["usual_workers"], f.Details["slices"] = float64(w.rival.workers), float64(w.lab.slices)
	f.Details["slice_seconds"] = w.lab.slice.Seconds()
	return f, nil
}

// calm is how many events a second the latency is measured at.
const calm = 50.0

func measureLatency(ctx context.Context, l *Lab) (Figure, error) {
	w, err := l.newWire(ctx, l.cabinets)
	if err != nil {
		return Figure{}, err
	}
	f, err := w.measureWaits(ctx)
	return f, w.end(ctx, err)
}

// measureWaits takes the waits of all turns together: a single turn has too few for a p99.
func (w *wire) measureWaits(ctx context.Context) (Figure, error) {
	if err := w.chooseCrew(ctx); err != nil {
		return Figure{}, err
	}
	var doortab, usual []time.Duration
	for turn := range w.lab.strolls {
		left := time.Duration(w.lab.strolls-turn) * 2 * time.Duration(float64(w.lab.strollEvents)/calm*float64(time.Second))
		w.lab.say("turn %d of %d, about %.0f s left", turn+1, w.lab.strolls, left.Seconds())
		if err := w.stroll(ctx, turn, w.doortab, w.events, &doortab); err != nil {
			return Figure{}, err
		}
		if err := w.stroll(ctx, turn, w.usual, w.same, &usual); err != nil {
			return Figure{}, err
		}
	}
	f := newFigure(milliseconds(quantile(doortab, 0.99)), milliseconds(quantile(usual, 0.99)), "ms")
	f.Details["events"], f.Details["usual_workers"] = float64(len(doortab)), float64(w.rival.workers)
	for name, waits := range map[string][]time.Duration{"doortab": doortab, "usual": usual} {
		f.Details[name+"_p50_ms"] = milliseconds(quantile(waits, 0.5))
		f.Details[name+"_p99_ms"] = milliseconds(quantile(waits, 0.99))
		f.Details[name+"_most_ms"] = milliseconds(quantile(waits, 1))
	}
	return f, nil
}

// stroll adds the waits of one turn. Some events go before, until everything is connected and cached.
func (w *wire) stroll(ctx context.Context, turn int, start worker, events *stream, waits *[]time.Duration) error {
	return w.run(ctx, start, 1, events.publication, func(fleet *load.Load, _ []*process) error {
		if _, err := fleet.Stroll(ctx, uint64(turn), calm, min(int(calm), w.lab.strollEvents)); err != nil { //nolint:gosec // a small number
			return err
		}
		more, err := fleet.Stroll(ctx, uint64(turn), calm, w.lab.strollEvents) //nolint:gosec // as above
		*waits = append(*waits, more...)
		return err
	})
}
