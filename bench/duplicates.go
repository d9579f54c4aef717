package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"doortab/bench/usual"
	"doortab/cabinet"
	"doortab/settlement"
)

var duplicatesPart = part{
	name: "duplicates", about: "events that are settled already and come again", run: measureDuplicates,
	goals: []goal{
		{label: "answered ÷ settle", value: byDetail("of_settle"), must: 3, aim: 10},
		{label: "without Redis", value: byDetail("of_settle_without_redis"), must: 3, aim: 10},
	},
}

// maxResent bounds the events that are kept to be sent again.
const maxResent = 50_000

// resends are events that both designs have settled, sent again and again in the same order.
type resends struct {
	duel         *duel
	withoutRedis *product // a second process on Doortab's database
	events       []*cabinet.Event
	deliveries   []settlement.Delivery
	sent         int
}

func measureDuplicates(ctx context.Context, l *Lab) (Figure, error) {
	d, err := l.newDuel(ctx, newPast(l.cabinets, 0), l.cabinets)
	if err != nil {
		return Figure{}, err
	}
	r := &resends{duel: d}
	f, err := r.measure(ctx, l)
	if r.withoutRedis != nil {
		err = errors.Join(err, r.withoutRedis.close())
	}
	if err != nil {
		return f, errors.Join(err, d.close())
	}
	return f, d.end(ctx, l)
}

func (r *resends) measure(ctx context.Context, l *Lab) (f Figure, err error) {
	if r.withoutRedis, err = r.duel.product.another(l); err != nil {
		return f, err
	}
	if err := r.settleOnce(ctx, l); err != nil {
		return f, err
	}
	sides := []side{
		{"doortab", r.answered(r.duel.product)}, {"usual", r.refused}, {"without_redis", r.answered(r.withoutRedis)},
		{"settle", r.duel.doortab},
	}
	spreads, err := l.alternate(ctx, sides...)
	if err != nil {
		return f, err
	}
	f = newFigure(spreads[0].median, spreads[1].median, "resent events answered/s")
	for i, s := range sides {
		spreads[i].detail(f.Details, s.name)
	}
	f.Details["of_settle"] = ratio(spreads[0].median, spreads[3].median)
	f.Details["of_settle_without_redis"] = ratio(spreads[2].median, spreads[3].median)
	f.Details["events"] = float64(len(r.events))
	return f, nil
}

// settleOnce lets Doortab settle what it can in one turn, and the usual design take the tokens of the same events.
func (r *resends) settleOnce(ctx context.Context, l *Lab) error {
	l.say("settling the events that come again")
	fed, err := r.duel.product.feed(ctx, l.slice, func() (settlement.Delivery, error) {
		e := r.duel.events.next()
		sent, err := delivery(e)
		if len(r.events) < maxResent {
			r.events, r.deliveries = append(r.events, e), append(r.deliveries, sent)
		}
		return sent, err
	})
	r.duel.acknowledged += fed.all
	if err != nil {
		return err
	}
	for _, e := range r.events {
		if err := r.duel.rival.design.Take(ctx, usualEvent(e)); err != nil {
			return err
		}
	}
	return nil
}

// answered resends to Doortab, and fails unless each event has its stored receipt again.
func (r *resends) answered(p *product) func(context.Context, time.Duration) (float64, error) {
	return func(ctx context.Context, slice time.Duration) (float64, error) {
		before := p.repeats.Load()
		fed, err := p.feed(ctx, slice, func() (settlement.Delivery, error) {
			r.sent++
			return r.deliveries[r.sent%len(r.deliveries)], nil
		})
		if repeats := p.repeats.Load() - before; err == nil && repeats != fed.all {
			err = fmt.Errorf("of %d resent events %d were answered as repeats", fed.all, repeats)
		}
		return fed.perSecond(), err
	}
}

// refused resends to the usual design, which knows by the token that it had the event, and nothing more.
func (r *resends) refused(ctx context.Context, slice time.Duration) (float64, error) {
	var sent atomic.Int64
	perSecond, _, err := r.duel.rival.work(ctx, slice, func() error {
		e := r.events[int(sent.Add(1))%len(r.events)]
		err := r.duel.rival.design.Settle(ctx, usualEvent(e))
		if errors.Is(err, usual.ErrDuplicate) {
			return nil
		}
		return fmt.Errorf("a resent event was not refused: %w", err)
	})
	return perSecond, err
}
