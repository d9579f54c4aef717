package bench

import (
	"context"
	"io"
	"runtime"

	"doortab/cabinet"
	"doortab/settlement"
)

// probeGroup is the size of the groups by which the core is probed: what intake makes of a full queue.
const probeGroup = 200

// probe counts what the core allocates for one settlement, the database's client included: groups that are ready beforehand,
// one after the other.
func (d *duel) probe(ctx context.Context, l *Lab, details map[string]float64) error {
	var groups [][]settlement.Delivery
	for range max(1, l.probes/probeGroup) {
		group := make([]settlement.Delivery, probeGroup)
		for i := range group {
			var err error
			if group[i], err = d.next(); err != nil {
				return err
			}
		}
		groups = append(groups, group)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, group := range groups {
		for _, answer := range d.product.settlement.Settle(ctx, group) {
			if answer.Err != nil {
				return answer.Err
			}
		}
	}
	runtime.ReadMemStats(&after)
	n := int64(len(groups) * probeGroup)
	d.acknowledged += n
	details["allocations_per_settlement"] = float64(after.Mallocs-before.Mallocs) / float64(n)
	details["allocated_bytes_per_settlement"] = float64(after.TotalAlloc-before.TotalAlloc) / float64(n)
	return nil
}

// evidence is how many events a second settle that carry all evidence there is: counts, the scales of all lanes and tags.
func (d *duel) evidence(ctx context.Context, l *Lab) (perSecond float64, err error) {
	events, err := d.tagged(ctx, l.probes)
	if err != nil {
		return 0, err
	}
	fed, err := d.product.feed(ctx, drainLimit, each(events))
	d.acknowledged += fed.all
	return fed.perSecond(), err
}

// each delivers events one by one.
func each(events []*cabinet.Event) func() (settlement.Delivery, error) {
	return func() (settlement.Delivery, error) {
		if len(events) == 0 {
			return settlement.Delivery{}, io.EOF
		}
		e := events[0]
		events = events[1:]
		return delivery(e)
	}
}

// tagged makes events with full evidence and puts their tags into the books.
func (d *duel) tagged(ctx context.Context, n int) ([]*cabinet.Event, error) {
	staying, err := d.stayingTags(ctx)
	if err != nil {
		return nil, err
	}
	events := make([]*cabinet.Event, n)
	var taken []tag
	for i := range events {
		e := d.events.next()
		e.HasWeights, e.HasRFID = true, true
		e.Weights = scales(e.Items)
		e.RFID.After = staying[e.DeviceID]
		e.RFID.Before = append([]string(nil), e.RFID.After...)
		for _, item := range e.Items {
			epc := sgtin96(int(item.ProductID), int64(firstTakenSerial+len(taken)))
			taken = append(taken, tag{epc, item.ProductID, e.DeviceID})
			e.RFID.Before = append(e.RFID.Before, epc)
		}
		events[i] = e
	}
	return events, insertTags(ctx, d.product.db, taken)
}
