package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"doortab/database"
)

const (
	flushEvery = 500 * time.Millisecond
	lastFlush  = 2 * time.Second
	seenEvery  = 10 * time.Minute // how often a state that stays the same moves last_seen_at
	maxBootID  = 64
)

// StatusBoard carries the cabinets' online states and temperatures into the table: the latest of each, a thousand to a
// statement, and only those that change a row. A broker that hands over the retained states of a whole fleet costs it little.
type StatusBoard struct {
	db           *database.DB
	log          *slog.Logger
	states       latest[status]
	temperatures latest[temperature]
}

type status struct {
	DeviceID int64
	Online   bool
	BootID   string
	At       time.Time
}

func (s status) from() (int64, time.Time) { return s.DeviceID, s.At }

// NewStatusBoard returns a board that writes to db once [StatusBoard.Run] runs.
func NewStatusBoard(db *database.DB, log *slog.Logger) *StatusBoard {
	return &StatusBoard{db: db, log: log, states: newLatest[status](), temperatures: newLatest[temperature]()}
}

// Offer notes what a cabinet's status said at a time. It never blocks. An unknown device is ignored when its turn
// comes; beyond 200,000 devices that wait, further ones are dropped.
func (b *StatusBoard) Offer(deviceID int64, online bool, bootID string, at time.Time) {
	if len(bootID) > maxBootID || !utf8.ValidString(bootID) {
		bootID = ""
	}
	b.states.offer(status{deviceID, online, bootID, at.UTC().Truncate(time.Millisecond)})
}

// Run writes what was offered every half second, and once more when ctx ends.
func (b *StatusBoard) Run(ctx context.Context) {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlush)
			b.flush(last)
			cancel()
			return
		case <-ticker.C:
			b.flush(ctx)
		}
	}
}

func (b *StatusBoard) flush(ctx context.Context) {
	b.states.flush(ctx, b.log, b.write)
	b.temperatures.flush(ctx, b.log, b.writeTemperatures)
}

func (b *StatusBoard) write(ctx context.Context, batch []status) error {
	changed, err := b.changed(ctx, batch)
	if err != nil || len(changed) == 0 {
		return err
	}
	rows, err := json.Marshal(changed)
	if err != nil {
		return fmt.Errorf("statuses as JSON: %w", err)
	}
	err = b.db.InTx(ctx, func(tx *gorm.DB) error { return tx.Exec(updateStatuses, string(rows)).Error })
	if err != nil {
		return fmt.Errorf("update cabinets: %w", err)
	}
	return nil
}

// The text is a string because gorm spreads bytes after a parenthesis into a list.
const updateStatuses = `UPDATE JSON_TABLE(CONVERT(? USING utf8mb4), '$[*]' COLUMNS (
    device_id BIGINT PATH '$.d', online INT PATH '$.o', boot_id VARCHAR(64) PATH '$.b', seen DATETIME(3) PATH '$.s')) n
  STRAIGHT_JOIN cabinets c ON c.device_id = n.device_id
  SET c.online = n.online, c.boot_id = n.boot_id, c.last_seen_at = COALESCE(n.seen, c.last_seen_at)`

// change is a row of updateStatuses; Seen is nil where last_seen_at stays.
type change struct {
	DeviceID int64   `json:"d"`
	Online   int     `json:"o"`
	BootID   string  `json:"b"`
	Seen     *string `json:"s"`
}

// changed leaves out devices that nobody registered and states that the table has already.
func (b *StatusBoard) changed(ctx context.Context, batch []status) ([]change, error) {
	ids := make([]int64, len(batch))
	for i, s := range batch {
		ids[i] = s.DeviceID
	}
	var rows []stored
	err := b.db.Read(ctx).Raw("SELECT device_id, online, boot_id, last_seen_at FROM cabinets WHERE device_id IN ?", ids).
		Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read cabinets: %w", err)
	}
	table := make(map[int64]stored, len(rows))
	for _, row := range rows {
		table[row.DeviceID] = row
	}
	var list []change
	for _, s := range batch {
		if row, known := table[s.DeviceID]; known && s.changes(row) {
			list = append(list, s.change(row))
		}
	}
	return list, nil
}

type stored struct {
	DeviceID   int64
	Online     bool
	BootID     string
	LastSeenAt *time.Time
}

func (s status) changes(row stored) bool {
	return s.Online != row.Online || s.BootID != row.BootID || s.Online && s.seenAnew(row)
}

func (s status) seenAnew(row stored) bool {
	return row.LastSeenAt == nil || s.At.Sub(*row.LastSeenAt) >= seenEvery
}

// change: a cabinet is seen when it says that it is online, and when it leaves. That it is still offline says nothing
// about when it was there.
func (s status) change(row stored) change {
	c := change{DeviceID: s.DeviceID, BootID: s.BootID}
	if s.Online {
		c.Online = 1
	}
	if s.Online || row.Online {
		seen := s.At.Format("2006-01-02 15:04:05.000")
		c.Seen = &seen
	}
	return c
}
