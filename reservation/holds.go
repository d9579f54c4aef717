package reservation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// Shopper is somebody at a cabinet.
type Shopper struct{ DeviceID, UserID int64 }

// Door is what a shopper took goods from. It picks up what was reserved before its event came and had not ended when it was opened.
type Door struct {
	Shopper
	OpenedAt   time.Time // or when the event came, where nobody knows
	ReceivedAt time.Time
}

// Holds is what is reserved of the goods of a group of doors inside one transaction: [OpenHolds] reads it, Take works out in
// memory what each door picks up, Write writes all of it. A nil one holds nothing.
type Holds struct {
	before   map[Goods]int64 // as read
	reserved map[Goods]int64
	own      map[Shopper][]*hold // those that end first come first
}

// hold is one reservation.
type hold struct {
	Key
	version int64
	made    time.Time
	until   time.Time
	left    map[int64]int64 // by product
	picked  map[int64]int64
}

// OpenHolds reads, without locks, what is reserved of goods, and by whom of the shoppers.
func OpenHolds(tx *gorm.DB, goods []Goods, shoppers []Shopper) (*Holds, error) {
	if len(goods) == 0 {
		return nil, nil
	}
	before, err := readReserved(tx, goodsOf(goods))
	if err != nil {
		return nil, err
	}
	h := &Holds{before: before, reserved: maps.Clone(before), own: map[Shopper][]*hold{}}
	for _, g := range goods {
		h.before[g] += 0 // what has no row yet is watched too
	}
	reservedAt := map[int64]bool{}
	for g, units := range before {
		if units > 0 {
			reservedAt[g.DeviceID] = true
		}
	}
	return h, h.readOwn(tx, slices.DeleteFunc(shoppers, func(s Shopper) bool { return s.UserID == 0 || !reservedAt[s.DeviceID] }))
}

func goodsOf(goods []Goods) [][]any {
	list := make([][]any, 0, len(goods))
	for _, g := range slices.Compact(slices.SortedFunc(slices.Values(goods), compareGoods)) {
		list = append(list, []any{g.DeviceID, g.ProductID})
	}
	return list
}

// The shoppers are one parameter: a list of tuples on two of the three columns of an index is no range of it.
const readHolds = `SELECT r.device_id, r.user_id, r.reservation_id, r.version, r.created_at, r.until_at, l.product_id, l.left_quantity
	FROM JSON_TABLE(?, '$[*]' COLUMNS (device_id BIGINT PATH '$[0]', user_id BIGINT PATH '$[1]')) n
	STRAIGHT_JOIN reservations r FORCE INDEX (reservations_held)
		ON r.device_id = n.device_id AND r.state = ? AND r.user_id = n.user_id
	STRAIGHT_JOIN reservation_lines l ON l.device_id = r.device_id AND l.reservation_id = r.reservation_id
	ORDER BY r.device_id, r.until_at, r.reservation_id`

func (h *Holds) readOwn(tx *gorm.DB, shoppers []Shopper) error {
	if len(shoppers) == 0 {
		return nil
	}
	wanted := map[Shopper]bool{}
	list := [][2]int64{}
	for _, s := range shoppers {
		if !wanted[s] {
			list = append(list, [2]int64{s.DeviceID, s.UserID})
		}
		wanted[s] = true
	}
	parameter, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("shoppers as JSON: %w", err)
	}
	var rows []struct {
		Shopper
		ReservationID, Version  int64
		CreatedAt, UntilAt      time.Time
		ProductID, LeftQuantity int64
	}
	if err := tx.Raw(readHolds, string(parameter), Held).Scan(&rows).Error; err != nil {
		return fmt.Errorf("read what shoppers have reserved: %w", err)
	}
	for _, r := range rows {
		of := h.own[r.Shopper]
		k := Key{r.DeviceID, r.ReservationID}
		if len(of) == 0 || of[len(of)-1].Key != k {
			of = append(of, &hold{
				Key: k, version: r.Version, made: r.CreatedAt, until: r.UntilAt, left: map[int64]int64{}, picked: map[int64]int64{},
			})
			h.own[r.Shopper] = of
		}
		of[len(of)-1].left[r.ProductID] = r.LeftQuantity
	}
	return nil
}

// Take picks up what the shopper has reserved of units that were taken, and tells whether the stock that is left behind is less
// than what others have reserved of the goods.
func (h *Holds) Take(d Door, goods Goods, units, stock int64) (othersLack bool) {
	if h == nil {
		return false
	}
	others := h.reserved[goods]
	for _, own := range h.own[d.Shopper] {
		others -= own.left[goods.ProductID]
		if picked := min(own.left[goods.ProductID], units); picked > 0 && own.goodFor(d) {
			own.left[goods.ProductID] -= picked
			own.picked[goods.ProductID] += picked
			h.reserved[goods] -= picked
			units -= picked
		}
	}
	return stock < others
}

func (h *hold) goodFor(d Door) bool { return d.OpenedAt.Before(h.until) && !h.made.After(d.ReceivedAt) }

// Write writes what was picked up. The caller has changed the goods' stock before, so that nobody can reserve of them until it
// commits. It returns [database.ErrConflict] where a reservation was made, returned or ended since it was read.
func (h *Holds) Write(tx *gorm.DB, now time.Time) error {
	if h == nil {
		return nil
	}
	if err := h.unchanged(tx); err != nil {
		return err
	}
	picked, units := h.picked()
	var holds, lines [][]any
	for _, own := range picked {
		holds = append(holds, []any{own.DeviceID, own.ReservationID, own.version, own.state(), own.version + 1, now})
		for _, product := range slices.Sorted(maps.Keys(own.picked)) {
			lines = append(lines, []any{own.DeviceID, own.ReservationID, product, own.left[product]})
		}
	}
	if err := database.UpdateAll(tx, "reservations", holdKey, holdValues, holds); err != nil {
		return err
	}
	if err := database.UpdateAll(tx, "reservation_lines", lineKeys, lineValues, lines); err != nil {
		return err
	}
	return lower(tx, units)
}

var (
	holdKey    = []database.Column{database.Int("device_id"), database.Int("reservation_id"), database.Int("version")}
	holdValues = []database.Column{database.Code("state"), database.Int("version"), database.Time("updated_at")}
	lineKeys   = []database.Column{database.Int("device_id"), database.Int("reservation_id"), database.Int("product_id")}
	lineValues = []database.Column{database.Int("left_quantity")}
)

// unchanged: what was reserved since the goods were judged, a door must know. What was given back it need not.
func (h *Holds) unchanged(tx *gorm.DB) error {
	reserved, err := readReserved(tx, goodsOf(slices.Collect(maps.Keys(h.before))))
	if err != nil {
		return err
	}
	for g, units := range reserved {
		if units > h.before[g] {
			return fmt.Errorf("product %d of cabinet %d was reserved meanwhile: %w", g.ProductID, g.DeviceID, database.ErrConflict)
		}
	}
	return nil
}

// picked lists the reservations of which something was picked up, and of which goods how much in all.
func (h *Holds) picked() (list []*hold, units map[Goods]int64) {
	units = map[Goods]int64{}
	for _, of := range h.own {
		for _, own := range of {
			if len(own.picked) == 0 {
				continue
			}
			list = append(list, own)
			for product, n := range own.picked {
				units[Goods{own.DeviceID, product}] += n
			}
		}
	}
	slices.SortFunc(list, func(a, b *hold) int { return compareKeys(a.Key, b.Key) })
	return list, units
}

func (h *hold) state() State {
	for _, left := range h.left {
		if left > 0 {
			return Held
		}
	}
	return Used
}
