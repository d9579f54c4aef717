package archive

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// payloads moves the messages that settlements came from, the oldest first. All else of a settlement stays, so that its
// event is known and answered for ever.
type payloads struct {
	db     *database.DB
	before time.Time
	batch  int
	last   event
}

// event is a settlement's place in the order of time.
type event struct {
	ReceivedAt   time.Time
	DeviceID     int64
	CloseEventID string
	Archived     bool // its payload is
}

func (*payloads) what() string { return "payloads" }

func (p *payloads) pending(ctx context.Context) (n int64, err error) {
	err = p.db.Read(ctx).Raw(`SELECT COUNT(*) FROM settlements s FORCE INDEX (settlements_newest)
		LEFT JOIN settlement_payloads_archive a ON a.device_id = s.device_id AND a.close_event_id = s.close_event_id
		WHERE s.received_at < ? AND a.device_id IS NULL`, p.before).Scan(&n).Error
	return n, err
}

// step looks at the index alone for the next events, those that were archived before among them: it reads no row that
// it needn't.
func (p *payloads) step(ctx context.Context) (moved int64, more bool, err error) {
	var found []event
	err = p.db.Read(ctx).Raw(`SELECT s.received_at, s.device_id, s.close_event_id, a.device_id IS NOT NULL AS archived
		FROM settlements s FORCE INDEX (settlements_newest)
		LEFT JOIN settlement_payloads_archive a ON a.device_id = s.device_id AND a.close_event_id = s.close_event_id
		WHERE s.received_at < ? AND (s.received_at > ? OR s.received_at = ? AND s.device_id > ?
			OR s.received_at = ? AND s.device_id = ? AND s.close_event_id > ?)
		ORDER BY s.received_at, s.device_id, s.close_event_id LIMIT ?`, p.before, p.last.ReceivedAt, p.last.ReceivedAt,
		p.last.DeviceID, p.last.ReceivedAt, p.last.DeviceID, p.last.CloseEventID, p.batch).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	var keys [][]any
	for _, e := range found {
		if !e.Archived {
			keys = append(keys, []any{e.DeviceID, e.CloseEventID})
		}
	}
	sortKeys(keys)
	moved, err = detach(ctx, p.db, "settlements", "settlement_payloads_archive", "device_id, close_event_id", keys)
	if err == nil {
		p.last = found[len(found)-1]
	}
	return moved, len(found) == p.batch, err
}

// conflicts moves the other contents that came under an event's id; their digests stay, so that each is known again (R3).
type conflicts struct {
	db     *database.DB
	before time.Time
	batch  int
	last   conflict
}

type conflict struct {
	DeviceID     int64
	CloseEventID string
	Digest       []byte
}

func (*conflicts) what() string { return "conflicts" }

func (c *conflicts) pending(ctx context.Context) (n int64, err error) {
	err = c.db.Read(ctx).Raw("SELECT COUNT(*) FROM settlement_conflicts WHERE received_at < ? AND payload <> ''", c.before).
		Scan(&n).Error
	return n, err
}

func (c *conflicts) step(ctx context.Context) (moved int64, more bool, err error) {
	var found []conflict
	err = c.db.Read(ctx).Raw(`SELECT device_id, close_event_id, digest FROM settlement_conflicts
		WHERE received_at < ? AND payload <> '' AND (device_id > ? OR device_id = ? AND close_event_id > ?
			OR device_id = ? AND close_event_id = ? AND digest > ?)
		ORDER BY device_id, close_event_id, digest LIMIT ?`, c.before, c.last.DeviceID, c.last.DeviceID, c.last.CloseEventID,
		c.last.DeviceID, c.last.CloseEventID, c.last.Digest, c.batch).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	keys := make([][]any, len(found))
	for i, f := range found {
		keys[i] = []any{f.DeviceID, f.CloseEventID, f.Digest}
	}
	moved, err = detach(ctx, c.db, "settlement_conflicts", "conflict_payloads_archive", "device_id, close_event_id, digest", keys)
	if err == nil {
		c.last = found[len(found)-1]
	}
	return moved, len(found) == c.batch, err
}

// detach moves the payloads of rows, whose keys ascend, and leaves the rest of each row.
func detach(ctx context.Context, db *database.DB, from, to, key string, keys [][]any) (int64, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	return inTx(ctx, db, func(tx *gorm.DB) (moved int64, err error) {
		for some := range slices.Chunk(keys, keysAtOnce) {
			n, err := detachSome(tx, from, to, key, some)
			if err != nil {
				return 0, err
			}
			moved += n
		}
		return moved, nil
	})
}

func detachSome(tx *gorm.DB, from, to, key string, keys [][]any) (int64, error) {
	where := " WHERE (" + key + ") IN ? AND payload <> ''"
	copied := tx.Exec("INSERT INTO "+to+" ("+key+", payload) SELECT "+key+", payload FROM "+from+" FORCE INDEX (PRIMARY)"+where, keys)
	if copied.Error != nil {
		return 0, fmt.Errorf("copy payloads from %s to %s: %w", from, to, firstOrElse(copied.Error))
	}
	emptied := tx.Exec("UPDATE "+from+" FORCE INDEX (PRIMARY) SET payload = ''"+where, keys)
	if emptied.Error != nil {
		return 0, fmt.Errorf("take payloads from %s: %w", from, emptied.Error)
	}
	if emptied.RowsAffected != copied.RowsAffected {
		return 0, fmt.Errorf("move %d payloads of %s, %d were there to take: %w", copied.RowsAffected, from, emptied.RowsAffected,
			database.ErrConflict)
	}
	return copied.RowsAffected, nil
}

// sortKeys puts keys of events in ascending order, in which every writer locks.
func sortKeys(keys [][]any) {
	slices.SortFunc(keys, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(int64), b[0].(int64)), cmp.Compare(a[1].(string), b[1].(string)))
	})
}
