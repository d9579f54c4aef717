// Package reservation keeps units of one cabinet for a shopper who comes to pick them up.
//
// Reserved units stand in rows of their own beside the ledger: book stock and its version don't move. A reservation is made by
// a conditional update where stock less what is reserved suffices, is used up at its shopper's door, and ends by
// compare-and-set on its version, so that of a pick-up, a return and the expiry exactly one has each unit. Others may take
// what is reserved all the same (R4): then the reservation is short, which is worked out when it is read.
//
// Everything here that takes a tx locks in one order: device_stock, reservations, reservation_lines, reserved_stock, marks.
package reservation

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Limits of a reservation.
const (
	MaxAhead    = 7 * 24 * time.Hour // how far ahead its end may lie
	MaxLines    = 100
	MaxQuantity = 1000 // of one line
)

// Errors that callers act on; their texts are fit for a user.
var (
	ErrNotFound  = errors.New("no such reservation")
	ErrTooLittle = errors.New("too little stock that is not reserved")
	ErrOver      = errors.New("the reservation is over")
	ErrInvalid   = errors.New("invalid reservation")
)

// State says what became of a reservation.
type State string

// The states: held, then one of the others.
const (
	Held     State = "held"
	Used     State = "used"     // its shopper has taken all of it
	Returned State = "returned" // given back before its end
	Expired  State = "expired"  // its end came first
)

// Reservation is one as it is read.
type Reservation struct {
	ReservationID int64
	DeviceID      int64
	UserID        int64
	App           string // the name of the app that made it; "" for staff
	State         State
	Lines         []Line // ascending by product
	Until         time.Time
	CreatedAt     time.Time
}

// Line is one product of a reservation.
type Line struct {
	ProductID int64
	Quantity  int64
	Left      int64 // what its shopper has not taken; once it is over, what was given back
	Short     int64 // of Left, units that the books don't have for it; 0 once it is over
}

// Short tells whether the books lack units of it.
func (r Reservation) Short() bool {
	return slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Short > 0 })
}

// stateAt: one that is overdue has expired, whether it was swept yet or not.
func stateAt(state State, until, now time.Time) State {
	if state == Held && !until.After(now) {
		return Expired
	}
	return state
}

// Goods are the units of a product in a cabinet.
type Goods struct{ DeviceID, ProductID int64 }

func compareGoods(a, b Goods) int {
	return cmp.Or(cmp.Compare(a.DeviceID, b.DeviceID), cmp.Compare(a.ProductID, b.ProductID))
}

// Key is the primary key of a reservation.
type Key struct{ DeviceID, ReservationID int64 }

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.DeviceID, b.DeviceID), cmp.Compare(a.ReservationID, b.ReservationID))
}

func pairs(keys []Key) [][]any {
	list := make([][]any, len(keys))
	for i, k := range keys {
		list[i] = []any{k.DeviceID, k.ReservationID}
	}
	return list
}
