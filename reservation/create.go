package reservation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Request asks for units of one cabinet.
type Request struct {
	DeviceID int64
	UserID   int64
	App      string // "" for staff
	Lines    []RequestLine
	Until    time.Time // kept to the millisecond
}

// RequestLine is one product, at most once in a request, 1 to [MaxQuantity] units.
type RequestLine struct{ ProductID, Quantity int64 }

// Create makes a reservation in the caller's transaction, which has found that cabinet and products exist: all of its lines or
// none. It returns [ErrTooLittle] where stock less what is reserved is too low for one, and [ErrInvalid].
//
// Its locks on device_stock are shared: a sale in between waits for the reservation, or has lowered the stock that is read here.
func Create(tx *gorm.DB, r Request, now time.Time) (Reservation, error) {
	made, err := r.made(now)
	if err != nil {
		return Reservation{}, err
	}
	stock, err := lockStock(tx, made)
	if err != nil {
		return Reservation{}, err
	}
	if err := makeRoom(tx, made, stock, now); err != nil {
		return Reservation{}, err
	}
	if err := insert(tx, made); err != nil {
		return Reservation{}, err
	}
	for _, line := range made.Lines {
		if err := reserve(tx, Goods{made.DeviceID, line.ProductID}, line.Quantity, stock[line.ProductID]); err != nil {
			return Reservation{}, err
		}
	}
	if err := raiseMark(tx, made.Until); err != nil {
		return Reservation{}, err
	}
	return made, auditlog.Write(tx, auditlog.Entry{Action: "reservation.create", Target: made.target(), After: map[string]any{
		"deviceId": made.DeviceID, "userId": made.UserID, "lines": r.Lines, "until": made.Until,
	}}, now)
}

func (r Reservation) target() string { return "reservation " + strconv.FormatInt(r.ReservationID, 10) }

func (r Request) made(now time.Time) (Reservation, error) {
	made := Reservation{
		ReservationID: database.NewID(now), DeviceID: r.DeviceID, UserID: r.UserID, App: r.App, State: Held,
		Until: r.Until.UTC().Truncate(time.Millisecond), CreatedAt: now,
	}
	if !made.Until.After(now) || made.Until.After(now.Add(MaxAhead)) {
		return made, fmt.Errorf("%w: until %s: give a time in the next 7 days", ErrInvalid, r.Until.Format(time.RFC3339))
	}
	if len(r.Lines) < 1 || len(r.Lines) > MaxLines {
		return made, fmt.Errorf("%w: %d lines: give 1 to %d", ErrInvalid, len(r.Lines), MaxLines)
	}
	for _, line := range r.Lines {
		if line.Quantity < 1 || line.Quantity > MaxQuantity {
			return made, fmt.Errorf("%w: %d of product %d: give 1 to %d", ErrInvalid, line.Quantity, line.ProductID, MaxQuantity)
		}
		made.Lines = append(made.Lines, Line{ProductID: line.ProductID, Quantity: line.Quantity, Left: line.Quantity})
	}
	slices.SortFunc(made.Lines, func(a, b Line) int { return cmp.Compare(a.ProductID, b.ProductID) })
	for i := range made.Lines[1:] {
		if made.Lines[i].ProductID == made.Lines[i+1].ProductID {
			return made, fmt.Errorf("%w: product %d is there twice", ErrInvalid, made.Lines[i].ProductID)
		}
	}
	return made, nil
}

func (r Reservation) goods() [][]any {
	list := make([][]any, len(r.Lines))
	for i, line := range r.Lines {
		list[i] = []any{r.DeviceID, line.ProductID}
	}
	return list
}

// lockStock reads the book stock of each product, in ascending order, and keeps others from changing it.
func lockStock(tx *gorm.DB, r Reservation) (map[int64]int64, error) {
	var rows []struct{ ProductID, Stock int64 }
	err := tx.Raw(`SELECT product_id, stock FROM device_stock FORCE INDEX (PRIMARY)
		WHERE (device_id, product_id) IN ? ORDER BY product_id LOCK IN SHARE MODE`, r.goods()).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read book stock of cabinet %d: %w", r.DeviceID, err)
	}
	stock := make(map[int64]int64, len(rows))
	for _, row := range rows {
		stock[row.ProductID] = row.Stock
	}
	return stock, nil
}

// makeRoom sees to it that there are rows to reserve in, and where they seem full, ends what is overdue in the cabinet and was
// not swept yet.
func makeRoom(tx *gorm.DB, r Reservation, stock map[int64]int64, now time.Time) error {
	reserved, err := readReserved(tx, r.goods())
	if err != nil {
		return err
	}
	full, missing := false, [][]any{}
	for _, line := range r.Lines {
		before, known := reserved[Goods{r.DeviceID, line.ProductID}]
		full = full || before > 0 && before+line.Quantity > stock[line.ProductID]
		if !known {
			missing = append(missing, []any{r.DeviceID, line.ProductID, 0})
		}
	}
	if full {
		if err := endOverdueOf(tx, r.DeviceID, now); err != nil {
			return err
		}
	}
	return database.Insert(tx, "reserved_stock", []string{"device_id", "product_id", "reserved"}, missing,
		"ON DUPLICATE KEY UPDATE reserved = reserved")
}

func endOverdueOf(tx *gorm.DB, deviceID int64, now time.Time) error {
	var overdue []Key
	err := tx.Raw("SELECT device_id, reservation_id FROM reservations WHERE device_id = ? AND state = ? AND until_at <= ?",
		deviceID, Held, now).Scan(&overdue).Error
	if err != nil {
		return fmt.Errorf("find overdue reservations of cabinet %d: %w", deviceID, err)
	}
	_, err = end(tx, overdue, Expired, now)
	return err
}

func insert(tx *gorm.DB, r Reservation) error {
	err := database.Insert(tx, "reservations",
		[]string{"device_id", "reservation_id", "user_id", "app", "state", "version", "until_at", "created_at", "updated_at"},
		[][]any{{r.DeviceID, r.ReservationID, r.UserID, r.App, r.State, 1, r.Until, r.CreatedAt, r.CreatedAt}}, "")
	if database.IsDuplicate(err) {
		return fmt.Errorf("reservation %d: %w", r.ReservationID, database.ErrConflict) // the next run mints another id
	}
	if err != nil {
		return err
	}
	lines := make([][]any, len(r.Lines))
	for i, line := range r.Lines {
		lines[i] = []any{r.DeviceID, r.ReservationID, line.ProductID, line.Quantity, line.Left}
	}
	return database.Insert(tx, "reservation_lines",
		[]string{"device_id", "reservation_id", "product_id", "quantity", "left_quantity"}, lines, "")
}

// reserve is the conditional update that decides.
func reserve(tx *gorm.DB, goods Goods, units, stock int64) error {
	result := tx.Exec(`UPDATE reserved_stock SET reserved = reserved + ?
		WHERE device_id = ? AND product_id = ? AND reserved + ? <= ?`, units, goods.DeviceID, goods.ProductID, units, stock)
	if result.Error != nil {
		return fmt.Errorf("reserve product %d of cabinet %d: %w", goods.ProductID, goods.DeviceID, result.Error)
	}
	if result.RowsAffected != 1 {
		return fmt.Errorf("cabinet %d has fewer than %d of product %d free: %w", goods.DeviceID, units, goods.ProductID, ErrTooLittle)
	}
	return nil
}
