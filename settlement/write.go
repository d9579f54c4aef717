package settlement

import (
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/deadletter"
	"doortab/door"
)

// known is what the database holds about a group before it is settled.
type known struct {
	outcomes  map[key]outcome
	conflicts map[conflictKey]time.Time
	sequences map[int64]sequence // of every registered cabinet
	marks     database.Marks     // read where there is such a cabinet
}

type outcome struct {
	DeviceID     int64
	CloseEventID string
	Digest       []byte
	Receipt      []byte
}

type conflictKey struct {
	key
	digest [32]byte
}

// readKnown reads plainly, outcomes only where look says so. A row that it finds answers; a row
// that it does not find decides nothing (R6): only the insert of the key does.
func readKnown(tx *gorm.DB, items []*item, look bool) (*known, error) {
	k := &known{outcomes: map[key]outcome{}, conflicts: map[conflictKey]time.Time{}, sequences: map[int64]sequence{}}
	keys, devices := eventKeys(items)
	if len(keys) == 0 {
		return k, nil
	}
	if look {
		if err := k.readOutcomes(tx, keys); err != nil {
			return nil, err
		}
		if err := k.readConflicts(tx, items); err != nil {
			return nil, err
		}
	}
	return k, k.readCabinets(tx, devices)
}

var eventKey = []database.Column{database.Int("device_id"), database.Code("close_event_id")}

func eventKeys(items []*item) (keys [][]any, devices []int64) {
	for _, it := range items {
		if it.event != nil {
			keys = append(keys, []any{it.key.deviceID, it.key.closeEventID})
			devices = append(devices, it.key.deviceID)
		}
	}
	return keys, distinct(devices)
}

func (k *known) readOutcomes(tx *gorm.DB, keys [][]any) error {
	rows, err := database.ReadEach(tx, "settlements", eventKey, []string{"device_id", "close_event_id", "digest", "receipt"}, keys)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var o outcome
		if err := rows.Scan(&o.DeviceID, &o.CloseEventID, &o.Digest, &o.Receipt); err != nil {
			return fmt.Errorf("read settlements: %w", err)
		}
		k.outcomes[key{o.DeviceID, o.CloseEventID}] = o
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read settlements: %w", err)
	}
	return nil
}

// readConflicts is needed only where an event is known by other content, which is rare.
func (k *known) readConflicts(tx *gorm.DB, items []*item) error {
	var keys [][]any
	for _, it := range items {
		if stored, ok := k.outcomes[it.key]; ok && it.event != nil && !slices.Equal(stored.Digest, it.digest[:]) {
			keys = append(keys, []any{it.key.deviceID, it.key.closeEventID})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var rows []struct {
		DeviceID     int64
		CloseEventID string
		Digest       []byte
		ReceivedAt   time.Time
	}
	err := tx.Raw(`SELECT device_id, close_event_id, digest, received_at FROM settlement_conflicts
		WHERE (device_id, close_event_id) IN ?`, keys).Scan(&rows).Error
	if err != nil {
		return fmt.Errorf("read settlement_conflicts: %w", err)
	}
	for _, row := range rows {
		k.conflicts[conflictKey{key{row.DeviceID, row.CloseEventID}, [32]byte(row.Digest)}] = row.ReceivedAt
	}
	return nil
}

// write writes the batch. The settlements come first: their key is the gate that lets one of
// two writers of an event through (R1). Tables and rows follow in one order everywhere, so
// that two groups wait for each other instead of locking each other out.
func (b *batch) write(tx *gorm.DB, books *books) error {
	if err := b.insertSettlements(tx); err != nil {
		return err
	}
	if err := books.write(tx, b.now); err != nil {
		return err
	}
	if err := b.insertOrders(tx); err != nil {
		return err
	}
	if err := b.insertLines(tx); err != nil {
		return err
	}
	if err := door.Close(tx, b.doors, b.now); err != nil {
		return err
	}
	if err := b.writeDoubts(tx); err != nil {
		return err
	}
	return books.writeDoors(tx, b.now)
}

func (b *batch) writeDoubts(tx *gorm.DB) error {
	if err := insert(tx, "reviews", "", b.reviews, "review_id", "device_id", "close_event_id", "order_id",
		"conflict_digest", "reasons", "proposed", "evidence", "status", "created_at"); err != nil {
		return err
	}
	if err := insert(tx, "settlement_conflicts", "", b.conflicts, "device_id", "close_event_id", "digest", "payload",
		"received_at"); err != nil {
		return err
	}
	if err := deadletter.Insert(tx, b.letters, b.now); err != nil {
		return err
	}
	return insert(tx, "cabinet_sequences", adoptLater,
		b.sequences, "device_id", "epoch", "last_seq")
}
