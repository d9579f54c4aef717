package simulator

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

// shop lets shoppers come until ctx ends.
func (s *Simulator) shop(ctx context.Context) {
	crowd := newShoppers(s.config.Seed, s.products)
	luck := newPlan(s.config.Faults, s.config.Seed)
	rng := rand.New(rand.NewPCG(s.config.Seed, streamDelivery)) //nolint:gosec // not a secret
	// Who comes late, because the machine is busy, makes up for at most a second.
	const late = time.Second
	var apps errgroup.Group
	apps.SetLimit(appsAtOnce)
	defer func() { _ = apps.Wait() }() // they return nothing
	for at := time.Now(); ctx.Err() == nil; {
		at = at.Add(crowd.gap(s.pace()))
		if wait := time.Until(at); wait < -late {
			at = time.Now()
		} else if !pause(ctx, wait) {
			return
		}
		if d := s.freeCabinet(crowd.cabinet(len(s.fleet))); d != nil {
			s.come(ctx, d, crowd, luck.next(s.faults.happened), rng, &apps)
		} else {
			pause(ctx, doorGap/4)
		}
	}
}

// come lets shoppers use the cabinet. An app opens for some that no fault befalls: the faults of its own, which are lost
// unlocks and refused sessions, come by themselves.
func (s *Simulator) come(ctx context.Context, d *device, crowd *shoppers, fault Fault, rng *rand.Rand, apps *errgroup.Group) {
	v := crowd.next()
	opens := func() error { s.visitByApp(ctx, d, v); return nil }
	if fault == none && v.byApp && apps.TryGo(opens) {
		return
	}
	s.closeDoors(d, v, crowd, fault, rng)
}

// pace is how many doors a second the shoppers close: no more than there are doors for.
func (s *Simulator) pace() float64 {
	return min(s.config.Rate, float64(s.config.Cabinets)*float64(time.Second/doorGap))
}

// freeCabinet is the one that a shopper goes to, or where somebody else is at it, or it lets nobody in, one nearby; nil where
// none of those is free.
func (s *Simulator) freeCabinet(first int) *device {
	const nearby = 32
	now := time.Now()
	for i := range min(nearby, len(s.fleet)) {
		if d := s.fleet[(first+i)%len(s.fleet)]; d.free(now) {
			return d
		}
	}
	return nil
}

// closeDoors lets one shopper after the other use the cabinet, as many as the fault needs.
func (s *Simulator) closeDoors(d *device, v visit, crowd *shoppers, fault Fault, rng *rand.Rand) {
	now := time.Now()
	var reports []*report
	var entries []*entry
	for n := range visitsOf(fault, rng) {
		if n > 0 {
			v = crowd.next()
		}
		r, e := s.sell(d, v, doorSession{}, now)
		reports, entries = append(reports, r), append(entries, e)
	}
	list := deliver(fault, reports, now, rng)
	for _, e := range entries {
		s.books.open(e)
	}
	d.post(list...)
}

// sell lets a shopper take what he wants. The event of a session leaves it to Doortab who that was.
func (s *Simulator) sell(d *device, v visit, session doorSession, now time.Time) (*report, *entry) {
	r, taken := d.use(cabinet.KindSale, v.took, now, (*physical.Cabinet).Sale)
	r.UserID = v.userID
	if session.SessionID != "" {
		r.CloseEventID, r.SessionID, r.UserID = session.CloseEventID, session.SessionID, 0
	}
	if v.imagined != 0 && d.kind() == physical.KindItems {
		r.imagine(v.imagined)
	}
	return r, newEntry(r, d.kind(), v.userID, taken)
}
