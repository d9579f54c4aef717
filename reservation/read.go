package reservation

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// row is a reservation as the table has it.
type row struct {
	DeviceID      int64
	ReservationID int64
	UserID        int64
	App           string
	State         State
	UntilAt       time.Time
	CreatedAt     time.Time
}

const columns = "device_id, reservation_id, user_id, app, state, until_at, created_at"

// find reads one of an app's, or anybody's where app is "".
func find(tx *gorm.DB, reservationID int64, app string) (row, error) {
	var rows []row
	err := tx.Raw("SELECT "+columns+" FROM reservations WHERE reservation_id = ?", reservationID).Scan(&rows).Error
	if err != nil {
		return row{}, fmt.Errorf("read reservation %d: %w", reservationID, err)
	}
	if len(rows) == 0 || app != "" && rows[0].App != app {
		return row{}, ErrNotFound
	}
	return rows[0], nil
}

// Read reads one reservation of an app's, or of anybody's where app is "". It returns [ErrNotFound].
func Read(ctx context.Context, db *database.DB, reservationID int64, app string) (Reservation, error) {
	r, err := find(db.Read(ctx), reservationID, app)
	if err != nil {
		return Reservation{}, err
	}
	list, err := complete(db.Read(ctx), []row{r}, database.Now())
	if err != nil {
		return Reservation{}, err
	}
	return list[0], nil
}

// Filter narrows a list. Zero values don't.
type Filter struct {
	DeviceID int64
	UserID   int64
	State    State
	App      string
}

// List reads up to limit reservations, the newest first, that were made before the one that before names; 0 means from the
// newest.
func List(ctx context.Context, db *database.DB, f Filter, before int64, limit int) ([]Reservation, error) {
	now := database.Now()
	query, args := "SELECT "+columns+" FROM reservations WHERE 1 = 1", []any{}
	only := func(condition string, values ...any) { query, args = query+" AND "+condition, append(args, values...) }
	if before != 0 {
		only("reservation_id < ?", before)
	}
	if f.DeviceID != 0 {
		only("device_id = ?", f.DeviceID)
	}
	if f.UserID != 0 {
		only("user_id = ?", f.UserID)
	}
	if f.App != "" {
		only("app = ? AND CHAR_LENGTH(app) = CHAR_LENGTH(?)", f.App, f.App) // = takes no notice of spaces at the end
	}
	switch f.State {
	case "":
	case Held:
		only("state = ? AND until_at > ?", Held, now)
	case Expired:
		only("(state = ? OR state = ? AND until_at <= ?)", Expired, Held, now)
	default:
		only("state = ?", f.State)
	}
	var rows []row
	if err := db.Read(ctx).Raw(query+" ORDER BY reservation_id DESC LIMIT ?", append(args, limit)...).Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("list reservations: %w", err)
	}
	return complete(db.Read(ctx), rows, now)
}

// complete adds lines, and how short each is.
func complete(tx *gorm.DB, rows []row, now time.Time) ([]Reservation, error) {
	list, keys, at := make([]Reservation, len(rows)), make([]Key, len(rows)), map[Key]*Reservation{}
	for i, r := range rows {
		keys[i] = Key{r.DeviceID, r.ReservationID}
		list[i] = Reservation{
			ReservationID: r.ReservationID, DeviceID: r.DeviceID, UserID: r.UserID, App: r.App,
			State: stateAt(r.State, r.UntilAt, now), Until: r.UntilAt, CreatedAt: r.CreatedAt,
		}
		at[keys[i]] = &list[i]
	}
	if len(rows) == 0 {
		return list, nil
	}
	short, err := readShort(tx, list, now)
	if err != nil {
		return nil, err
	}
	var lines []struct {
		Key
		ProductID, Quantity, LeftQuantity int64
	}
	err = tx.Raw(`SELECT device_id, reservation_id, product_id, quantity, left_quantity
		FROM reservation_lines WHERE (device_id, reservation_id) IN ? ORDER BY device_id, reservation_id, product_id`,
		pairs(keys)).Scan(&lines).Error
	if err != nil {
		return nil, fmt.Errorf("read lines of reservations: %w", err)
	}
	for _, l := range lines {
		r := at[l.Key]
		r.Lines = append(r.Lines, Line{
			ProductID: l.ProductID, Quantity: l.Quantity, Left: l.LeftQuantity, Short: min(short[lineKey{l.Key, l.ProductID}], l.LeftQuantity),
		})
	}
	return list, nil
}
