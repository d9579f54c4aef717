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
	},
}

var hotPart = part{
	name: "hot", about: "the same, with all events from 5 cabinets", run: measureHot,
	goals: []goal{{label: "hot ÷ usual design", value: byRatio, must: 20, aim: 30}},
}

const hotCabinets = 5

func measureSettle(ctx context.Context, l *Lab) (Figure, error) {
	return l.measureCore(ctx, l.cabinets)
}

func measureHot(ctx context.Context, l *Lab) (Figure, error) { return l.measureCore(ctx, hotCabinets) }

// measureCore lets both designs settle new events of the cabinets 1 to active.
func (l *Lab) measureCore(ctx context.Context, active int) (Figure, error) {
	d, err := l.newDuel(ctx, active)
	if err != nil {
		return Figure{}, err
	}
	f, err := l.compare(ctx, "settlements/s", d.doortab, d.usual)
	if err != nil {
		return f, errors.Join(err, d.close())
	}
	f.Details["usual_workers"], f.Details["usual_failed"] = float64(d.rival.workers), float64(d.rival.failed.Load())
	return f, d.end(ctx, l)
}

// duel is both designs, each with full cabinets of its own, and the events for them.
type duel struct {
	product      *product
	rival        *rival
	events       *stream // Doortab's
	same         *stream // the usual design's
	acknowledged int64
}

func (l *Lab) newDuel(ctx context.Context, active int) (*duel, error) {
	l.say("filling %d cabinets", l.cabinets)
	p, err := l.newProduct(ctx, l.cabinets, true)
	if err != nil {
		return nil, err
	}
	r, err := l.newRival(ctx, l.cabinets)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	d := &duel{product: p, rival: r, events: newStream(1, active), same: newStream(1, active)}
	if err := l.chooseCrew(ctx, r, d.nextUsual); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *duel) next() (settlement.Delivery, error) { return delivery(d.events.next()) }

func (d *duel) nextUsual() usual.Event { return usualEvent(d.same.next()) }

func (d *duel) doortab(ctx context.Context, slice time.Duration) (float64, error) {
	perSecond, n, err := d.product.feed(ctx, slice, d.next)
	d.acknowledged += n
	return perSecond, err
}

func (d *duel) usual(ctx context.Context, slice time.Duration) (float64, error) {
	return d.rival.settle(ctx, slice, d.nextUsual)
}

// end checks that nothing was lost on the way, and removes both databases.
func (d *duel) end(ctx context.Context, l *Lab) error {
	return errors.Join(d.product.end(ctx, l, d.acknowledged), d.rival.end(ctx, l))
}

func (d *duel) close() error { return errors.Join(d.product.close(), d.rival.design.Close()) }
