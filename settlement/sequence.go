package settlement

import (
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/inventory"
)

// maxSeqJump is the furthest that a cabinet's seq may run ahead and still be believed (R13).
const maxSeqJump = 10_000

// sequence is how far a cabinet's events have come. A replaced controller starts a new epoch.
type sequence struct {
	epoch int
	last  *int64 // nil: no event with a seq yet
}

// readCabinets reads the marks with the cabinets: what lies behind a mark is read after it.
func (k *known) readCabinets(tx *gorm.DB, devices []int64) error {
	rows, err := database.ReadIn(tx, `SELECT c.device_id, COALESCE(s.epoch, 0), s.last_seq, `+database.MarkColumns+` FROM cabinets c
		LEFT JOIN cabinet_sequences s ON s.device_id = c.device_id WHERE c.device_id IN `, devices)
	if err != nil {
		return fmt.Errorf("read cabinets: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var (
			device int64
			s      sequence
		)
		if err := rows.Scan(append([]any{&device, &s.epoch, &s.last}, k.marks.Targets()...)...); err != nil {
			return fmt.Errorf("read a cabinet: %w", err)
		}
		k.sequences[device] = s
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read cabinets: %w", err)
	}
	return nil
}

// position is where an event stands in its cabinet's sequence; nil for one without a seq.
func (it *item) position(s sequence) *inventory.Position {
	if !it.event.HasSeq {
		return nil
	}
	return &inventory.Position{Epoch: s.epoch, Seq: it.event.Seq}
}

// adoptLater keeps the later of two positions, whichever transaction was first.
const adoptLater = `ON DUPLICATE KEY UPDATE last_seq =
	IF(epoch = VALUES(epoch), GREATEST(COALESCE(last_seq, 0), VALUES(last_seq)), last_seq)`

// adoptSequences works out how far each cabinet's events have come.
func (b *batch) adoptSequences(items []*item, before map[int64]sequence) {
	next := map[int64]int64{}
	for _, it := range items {
		if it.at == nil {
			continue
		}
		device, seq := it.key.deviceID, it.at.Seq
		newest, seen := next[device]
		if last := before[device].last; !seen && last != nil {
			newest, seen = *last, true
		}
		switch {
		case seen && seq > newest+maxSeqJump:
			b.jumps = append(b.jumps, seqJump{device, newest, seq})
		case !seen || seq > newest:
			if seen && seq > newest+1 {
				b.gaps = append(b.gaps, gap{device, it.at.Epoch, newest + 1, seq - 1, b.now})
			}
			next[device] = seq
		}
	}
	for _, device := range slices.Sorted(maps.Keys(next)) {
		b.sequences = append(b.sequences, []any{device, before[device].epoch, next[device]})
	}
}

// seqJump says that an event's number ran too far ahead of the cabinet's last to be adopted.
type seqJump struct{ deviceID, last, seq int64 }
