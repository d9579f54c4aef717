package simulator

import (
	"time"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

func (d *device) kind() physical.Kind { return d.goods.Kind() }

// use lets somebody use the cabinet, and returns the report of the door and how many units of each product are gone, or
// were brought.
func (d *device) use(
	kind cabinet.Kind, took time.Duration, now time.Time, what func(*physical.Cabinet) physical.Door,
) (*report, []quantity) {
	d.inside.Lock()
	defer d.inside.Unlock()
	door := what(d.goods)
	d.low.Store(d.goods.Low())
	r := d.report(kind, took, now)
	r.see(&door.Seen)
	return r, fromMap(door.Truth)
}

// content is what is for sale in the cabinet after the door of that seq has closed.
func (d *device) content() (units map[int64]int64, seq int64) {
	d.inside.Lock()
	defer d.inside.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.goods.Content(), d.seq
}

func (d *device) lacking() map[int64]int64 {
	d.inside.Lock()
	defer d.inside.Unlock()
	return d.goods.Lacking()
}

// put fills the cabinet without a door.
func (d *device) put(units map[int64]int64) {
	d.inside.Lock()
	defer d.inside.Unlock()
	d.goods.Put(units)
	d.low.Store(d.goods.Low())
}
