package inventory

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// MaxCounted is the most units that one line of a stock-take may count.
const MaxCounted = 100_000

// Errors of a stock-take's place in the cabinet's sequence; their texts are fit for a user.
var (
	ErrBeyondSequence = errors.New("asOfSeq is beyond the last event seen")
	ErrCountedLater   = errors.New("was counted at a later seq already")
)

// StocktakeRequest sets a cabinet's book stock to what was counted.
type StocktakeRequest struct {
	DeviceID    int64
	StocktakeID string // a UUID, minted by the caller
	// AsOfSeq is the seq of the last event whose effect the counter saw; nil means the last that
	// Doortab has seen.
	AsOfSeq *int64
	Actor   string // who did it: the id of a token
	Lines   []CountedLine
}

// CountedLine is one product of a stock-take, 0 to [MaxCounted] units.
type CountedLine struct{ ProductID, Counted int64 }

// AddStocktake books a stock-take (R13) and returns its movements in ascending order of products;
// products that are not listed stay as they are. The attempt is [database.DB.InTxCounted]'s. It
// fails with [ErrUnknownProduct], [ErrBeyondSequence], and with [ErrCountedLater] where a product's
// last count, under the same controller, counted further.
func AddStocktake(tx *gorm.DB, attempt int, request StocktakeRequest, now time.Time) ([]Movement, error) {
	keys := make([]Key, len(request.Lines))
	for i, line := range request.Lines {
		keys[i] = Key{request.DeviceID, line.ProductID}
	}
	if err := checkProducts(tx, keys); err != nil {
		return nil, err
	}
	ledger, err := OpenLedger(tx, keys, database.LockingFor(attempt))
	if err != nil {
		return nil, err
	}
	// The place is read after the rows, so that it is never behind a count that they had before.
	at, err := readPlace(tx, request)
	if err != nil {
		return nil, err
	}
	later, err := readLater(tx, request.DeviceID, at, keys)
	if err != nil {
		return nil, err
	}
	if err := insertStocktake(tx, request, at, now); err != nil {
		return nil, err
	}
	lines := slices.SortedFunc(slices.Values(request.Lines), func(a, b CountedLine) int {
		return compareKeys(Key{0, a.ProductID}, Key{0, b.ProductID})
	})
	movements := make([]Movement, len(lines))
	for i, line := range lines {
		key := Key{request.DeviceID, line.ProductID}
		if movements[i], err = ledger.count(key, line.Counted, at, later[line.ProductID], request.StocktakeID, now); err != nil {
			return nil, err
		}
	}
	return movements, ledger.Write(tx, now)
}

// place is what a stock-take counts up to; a nil seq is before any event that has one.
type place struct {
	epoch int
	seq   *int64
}

func readPlace(tx *gorm.DB, request StocktakeRequest) (place, error) {
	var rows []struct {
		Epoch   int
		LastSeq *int64
	}
	err := tx.Raw("SELECT epoch, last_seq FROM cabinet_sequences WHERE device_id = ?", request.DeviceID).Scan(&rows).Error
	if err != nil {
		return place{}, fmt.Errorf("read the sequence of cabinet %d: %w", request.DeviceID, err)
	}
	var last place
	if len(rows) > 0 {
		last = place{rows[0].Epoch, rows[0].LastSeq}
	}
	asked := request.AsOfSeq
	switch {
	case asked == nil:
		return last, nil
	case last.seq == nil:
		return place{}, fmt.Errorf("cabinet %d has sent no event with a seq yet: %w", request.DeviceID, ErrBeyondSequence)
	case *asked > *last.seq:
		return place{}, fmt.Errorf("cabinet %d has come to seq %d: %w", request.DeviceID, *last.seq, ErrBeyondSequence)
	}
	return place{last.epoch, asked}, nil
}

// moved is what events did to a product after the count that were settled before it.
type moved struct{ quantity, delta int64 }

const readMoved = `SELECT product_id, SUM(quantity) AS quantity, SUM(delta) AS delta FROM (
	SELECT product_id, quantity, delta FROM stock_movements FORCE INDEX (PRIMARY)
	WHERE device_id = ? AND seq_epoch = ? AND seq > ? AND product_id IN ?
	UNION ALL
	SELECT product_id, quantity, delta FROM stock_movements_archive FORCE INDEX (stock_movements_archive_seq)
	WHERE device_id = ? AND seq_epoch = ? AND seq > ? AND product_id IN ?) m GROUP BY product_id`

// readLater adds up by product what belongs to events after the place, archived or not: one statement, so that a movement
// which is being archived counts once. A movement that comes in meanwhile raises its row's version, so that the stock-take
// runs again.
func readLater(tx *gorm.DB, deviceID int64, at place, keys []Key) (map[int64]moved, error) {
	later := map[int64]moved{}
	if at.seq == nil { // no event of this controller has a place
		return later, nil
	}
	ids := make([]int64, len(keys))
	for i, key := range keys {
		ids[i] = key.ProductID
	}
	for some := range slices.Chunk(ids, rowsAtOnce) {
		var rows []struct{ ProductID, Quantity, Delta int64 }
		err := tx.Raw(readMoved, deviceID, at.epoch, *at.seq, some, deviceID, at.epoch, *at.seq, some).Scan(&rows).Error
		if err != nil {
			return nil, fmt.Errorf("read movements of cabinet %d after seq %d: %w", deviceID, *at.seq, err)
		}
		for _, row := range rows {
			later[row.ProductID] = moved{row.Quantity, row.Delta}
		}
	}
	return later, nil
}

func insertStocktake(tx *gorm.DB, r StocktakeRequest, at place, now time.Time) error {
	return database.Insert(tx, "stocktakes",
		[]string{"device_id", "stocktake_id", "as_of_seq", "seq_epoch", "actor", "created_at"},
		[][]any{{r.DeviceID, r.StocktakeID, at.seq, at.epoch, r.Actor, now}}, "")
}

// count sets a row to what was counted, and to what events that came after the place have left
// of it since.
func (l *Ledger) count(key Key, counted int64, at place, since moved, ref string, now time.Time) (Movement, error) {
	r := l.rows[key]
	if r.CountedSeq != nil && at.seq != nil && r.CountedEpoch == at.epoch && *at.seq < *r.CountedSeq {
		return Movement{}, fmt.Errorf("product %d %w: seq %d", key.ProductID, ErrCountedLater, *r.CountedSeq)
	}
	delta := max(0, counted+since.quantity) - r.Stock
	r.CountedSeq, r.CountedEpoch, r.recounted = at.seq, at.epoch, true
	return l.add(r, Movement{
		Change:     Change{Key: key, Kind: Stocktake, Quantity: delta, Ref: ref},
		Delta:      delta,
		Difference: counted - (r.Stock - since.delta),
		CreatedAt:  now,
	}), nil
}
