package bench

import (
	"context"
	"errors"
	"time"

	"doortab/bench/usual"
	"doortab/settlement"
)

var settlePart = part{
	name: "settle", about: "events of 1000 cabinets settled in process", run: measureSettle,
	goals: []goal{
		{label: "settle ÷ usual design", value: byRatio, must: 8, aim: 15},
		{label: "fsyncs per settlement", value: byDetail("fsyncs_per_settlement"), must: 0.05, aim: 0.01, most: true},
	},
}

var hotPart = part{
	name: "hot", about: "events of 5 cabinets alone, settled in process", run: measureHot,
	goals: []goal{{label: "hot ÷ usual design", value: byRatio, must: 20, aim: 30}},
}

// The hot cabinets stand among others that sell nothing.
const hotCabinets, hotFleet = 5, 100

func measureHot(ctx context.Context, l *Lab) (Figure, error) {
	d, err := l.newDuel(ctx, newPast(hotFleet, 0), hotCabinets)
	if err != nil {
		return Figure{}, err
	}
	f, err := d.measure(ctx, l)
	if err != nil {
		return f, errors.Join(err, d.close())
	}
	return f, d.end(ctx, l)
}

func measureSettle(ctx context.Context, l *Lab) (Figure, error) {
	d, err := l.newDuel(ctx, newPast(l.cabinets, 0), l.cabinets)
	if err != nil {
		return Figure{}, err
	}
	f, err := d.measureCosts(ctx, l)
	if err != nil {
		return f, errors.Join(err, d.close())
	}
	return f, d.end(ctx, l)
}

// measure lets both designs settle new events in turn.
func (d *duel) measure(ctx context.Context, l *Lab) (Figure, error) {
	f, err := l.compare(ctx, "settlements/s", d.doortab, d.usual)
	if err != nil {
		return f, err
	}
	d.cost.perEvent(f.Details, "")
	d.usualCost.perEvent(f.Details, "usual_")
	f.Details["usual_workers"], f.Details["usual_failed"] = float64(d.rival.workers), float64(d.rival.failed.Load())
	return f, nil
}

// measureCosts adds to [duel.measure] what a settlement costs on disk and in memory, and what evidence costs.
func (d *duel) measureCosts(ctx context.Context, l *Lab) (Figure, error) {
	before, err := tableBytes(ctx, d.product.db)
	if err != nil {
		return Figure{}, err
	}
	f, err := d.measure(ctx, l)
	if err != nil {
		return f, err
	}
	after, err := tableBytes(ctx, d.product.db)
	if err != nil {
		return f, err
	}
	f.Details["disk_bytes_per_settlement"] = ratio(after-before, float64(d.acknowledged))
	l.say("counting allocations, then %d events with scales and tags", l.probes)
	if err := d.probe(ctx, l, f.Details); err != nil {
		return f, err
	}
	rate, err := d.evidence(ctx, l)
	f.Details["evidence"], f.Details["evidence_ratio"] = rate, ratio(rate, f.Usual)
	return f, err
}

// duel is both designs, each with full cabinets of its own, and the events for them.
type duel struct {
	product      *product
	rival        *rival
	events       *stream // Doortab's
	same         *stream // the usual design's
	acknowledged int64   // by Doortab
	cost         *meter  // of Doortab's turns
	usualCost    *meter
	lab          *Lab
}

// newDuel fills both, lets events come from the cabinets 1 to active, and chooses the usual design's workers.
func (l *Lab) newDuel(ctx context.Context, before past, active int) (*duel, error) {
	l.say("filling %d cabinets with %d past events", before.cabinets, before.events())
	p, err := l.newProduct(ctx, before, true)
	if err != nil {
		return nil, err
	}
	r, err := l.newRival(ctx, before)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	d := &duel{
		product: p, rival: r, events: newStream(1, active, before), same: newStream(1, active, before), cost: newMeter(), usualCost: newMeter(), lab: l,
	}
	if err := l.chooseCrew(ctx, r, d.nextUsual); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *duel) next() (settlement.Delivery, error) { return delivery(d.events.next()) }

func (d *duel) nextUsual() usual.Event { return usualEvent(d.same.next()) }

func (d *duel) doortab(ctx context.Context, slice time.Duration) (perSecond float64, err error) {
	err = d.cost.around(ctx, d.lab, func() (int64, error) {
		fed, err := d.product.feed(ctx, slice, d.next)
		perSecond = fed.perSecond()
		d.acknowledged += fed.all
		return fed.all, err
	})
	return perSecond, err
}

func (d *duel) usual(ctx context.Context, slice time.Duration) (perSecond float64, err error) {
	err = d.usualCost.around(ctx, d.lab, func() (n int64, err error) {
		perSecond, n, err = d.rival.settle(ctx, slice, d.nextUsual)
		return n, err
	})
	return perSecond, err
}

// end checks that nothing was lost on the way, and removes both databases.
func (d *duel) end(ctx context.Context, l *Lab) error {
	return errors.Join(d.product.end(ctx, l, d.acknowledged), d.rival.end(ctx, l))
}

func (d *duel) close() error { return errors.Join(d.product.close(), d.rival.design.Close()) }
