package settlement_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"doortab/cabinet"
	"doortab/database"
	"doortab/reservation"
)

// promise is what the model knows of a reservation.
type promise struct {
	id, device, user int64
	until            time.Time
	state            reservation.State
	left             map[int64]int64
}

func (d *desk) promised(device, product int64, of func(*promise) bool) (units int64) {
	for _, p := range d.promises {
		if p.device == device && p.state == reservation.Held && of(p) {
			units += p.left[product]
		}
	}
	return units
}

func anybody(*promise) bool { return true }

// reserveSome is refused where stock less what is held is too low for one of the lines.
func (d *desk) reserveSome() {
	p := &promise{
		device: int64(1001 + d.IntN(2)), user: 42 + d.Int64N(3), state: reservation.Held, left: map[int64]int64{},
		until: d.opened.Add(time.Hour + time.Duration(d.IntN(3600))*time.Second),
	}
	free, lines := true, []int64{}
	for _, product := range []int64{7, 8, 9} {
		if units := d.Int64N(4); units > 0 {
			p.left[product], lines = units, append(lines, product, units)
			free = free && d.promised(p.device, product, anybody)+units <= d.books.stock[[2]int64{p.device, product}]
		}
	}
	if len(lines) == 0 {
		return
	}
	made, err := d.tryReserveUntil(p.until, p.device, p.user, lines...)
	if (err == nil) != free || err != nil && !errors.Is(err, reservation.ErrTooLittle) {
		d.t.Errorf("reserve %v in %d, which is free: %v: %v", lines, p.device, free, err)
	}
	if err == nil {
		p.id = made.ReservationID
		d.promises = append(d.promises, p)
	}
}

// endSome gives a held one back, or lets its time be over.
func (d *desk) endSome() {
	var open []*promise
	for _, p := range d.promises {
		if p.state == reservation.Held {
			open = append(open, p)
		}
	}
	if len(open) == 0 {
		return
	}
	p := open[d.IntN(len(open))]
	if d.IntN(2) == 0 {
		p.state = reservation.Returned
		if err := d.giveBack(p.id); err != nil {
			d.t.Error(err)
		}
		return
	}
	p.state = reservation.Expired
	d.exec("UPDATE reservations SET until_at = ? WHERE reservation_id = ?", database.Now(), p.id)
	if _, err := reservation.Sweep(d.t.Context(), d.db); err != nil {
		d.t.Error(err)
	}
}

// lacking tells whether a sale, once it is booked, leaves less than what others have reserved.
func (d *desk) lacking(p *past) bool {
	if p.restock {
		return false
	}
	for product := range p.sure {
		k := [2]int64{p.device, product}
		others := d.promised(p.device, product, func(r *promise) bool { return r.user != p.user })
		if d.books.stock[k] < others && !d.countedUpTo(k).covers(p.at) {
			return true
		}
	}
	return false
}

// pickUp is what units that a shopper took do to reservations of the shopper's own.
func (d *desk) pickUp(p *past, taken map[int64]int64) {
	if p.restock {
		return
	}
	for product, units := range taken {
		for _, r := range slices.SortedFunc(slices.Values(d.promises), func(a, b *promise) int {
			return cmp.Or(a.until.Compare(b.until), cmp.Compare(a.id, b.id))
		}) {
			if n := min(r.left[product], units); n > 0 && r.device == p.device && r.user == p.user && r.state == reservation.Held {
				r.left[product] -= n
				units -= n
			}
		}
	}
	for _, r := range d.promises {
		if r.state == reservation.Held && slices.Max(slices.Collect(maps.Values(r.left))) == 0 {
			r.state = reservation.Used
		}
	}
}

func (d *desk) checkTaken(p *past, receipt cabinet.Receipt, othersLack bool) {
	d.t.Helper()
	if got := slices.Contains(receipt.Reasons, cabinet.ReasonReservedTaken); got != othersLack {
		d.t.Errorf("%s took what others reserved: %v, its receipt says %v", p.id, othersLack, receipt.Reasons)
	}
}

// short is what a held one lacks: the older ones have the stock before it.
func (d *desk) short(p *promise, product int64) int64 {
	if p.state != reservation.Held {
		return 0
	}
	older := d.promised(p.device, product, func(r *promise) bool { return r.id < p.id })
	return max(p.left[product]-max(d.books.stock[[2]int64{p.device, product}]-older, 0), 0)
}

func (d *desk) comparePromises() {
	d.t.Helper()
	for _, p := range d.promises {
		want, got := []string{string(p.state)}, []string{}
		for _, product := range slices.Sorted(maps.Keys(p.left)) {
			want = append(want, fmt.Sprint(product, " left ", p.left[product], " short ", d.short(p, product)))
		}
		r, err := reservation.Read(d.t.Context(), d.db, p.id, "")
		if err != nil {
			d.t.Error(err)
		}
		got = append(got, string(r.State))
		for _, l := range r.Lines {
			got = append(got, fmt.Sprint(l.ProductID, " left ", l.Left, " short ", l.Short))
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			d.t.Errorf("reservation %d of user %d: %s", p.id, p.user, diff)
		}
	}
}
