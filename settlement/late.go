package settlement

import (
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
)

// moment is when a door closed, as far as the order of doors goes.
type moment struct {
	at         *inventory.Position // nil without a seq
	receivedAt time.Time
}

// after tells which of two doors is the later: within one controller's sequence by seq, else by the time at which they were
// reported. Cabinets resend, and what they resend comes behind what came meanwhile.
func (m moment) after(other moment, sameCabinet bool) bool {
	if sameCabinet && m.at != nil && other.at != nil && m.at.Epoch == other.at.Epoch {
		return m.at.Seq > other.at.Seq
	}
	return m.receivedAt.After(other.receivedAt)
}

func (it *item) moment() moment { return moment{it.at, it.ReceivedAt} }

// readMovers finds when the doors closed that moved tags which the group's events see: of tags that aren't in the event's
// cabinet, and of all where the event comes behind a later one. Other events need no statement.
func (b *books) readMovers(tx *gorm.DB, items []*item) error {
	b.movers = map[key]moment{}
	asked := map[key]bool{}
	var keys [][]any
	for _, it := range items {
		for _, epc := range slices.Concat(it.event.RFID.Before, it.event.RFID.After) {
			place := b.place(epc, it.key.deviceID)
			if place == cabinet.TagUnknown || place == cabinet.TagHere && !it.behind {
				continue
			}
			tag, _ := b.tags.Tag(epc)
			mover := key{tag.DeviceID, tag.CloseEventID}
			if !asked[mover] {
				asked[mover] = true
				b.movers[mover] = moment{receivedAt: tag.MovedAt} // all that there is of a write-off
				keys = append(keys, []any{tag.DeviceID, tag.CloseEventID})
			}
		}
	}
	for _, it := range items {
		if it.event.HasRFID {
			b.movers[it.key] = it.moment()
		}
	}
	return b.readMoments(tx, keys)
}

func (b *books) readMoments(tx *gorm.DB, keys [][]any) error {
	if len(keys) == 0 {
		return nil
	}
	columns := []string{"device_id", "close_event_id", "seq", "seq_epoch", "received_at"}
	rows, err := database.ReadEach(tx, "settlements", eventKey, columns, keys)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var (
			k          key
			seq, epoch *int64
			m          moment
		)
		if err := rows.Scan(&k.deviceID, &k.closeEventID, &seq, &epoch, &m.receivedAt); err != nil {
			return fmt.Errorf("read the doors that moved tags: %w", err)
		}
		if seq != nil && epoch != nil {
			m.at = &inventory.Position{Epoch: int(*epoch), Seq: *seq}
		}
		b.movers[k] = m
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the doors that moved tags: %w", err)
	}
	return nil
}

// movedLater tells whether a door that closed after the event's put the tag where the books have it.
func (b *books) movedLater(epc string, it *item) bool {
	tag, _ := b.tags.Tag(epc)
	mover, known := b.movers[key{tag.DeviceID, tag.CloseEventID}]
	return known && mover.after(it.moment(), tag.DeviceID == it.key.deviceID)
}
