package bench

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"doortab/bench/usual"
	"doortab/cabinet"
	"doortab/database"
)

// settlementsAtOnce bounds one statement to half a megabyte.
const settlementsAtOnce = 500

// settlements writes what became of the events of a portion.
func (p past) settlements(ctx context.Context, db *database.DB, some portion) error {
	var args []any
	for device := some.first; device <= some.last; device++ {
		for k := some.from; k < some.to; k++ {
			row, err := p.settlement(device, k)
			if err != nil {
				return err
			}
			args = append(args, row...)
			if len(args) == settlementsAtOnce*len(row) || device == some.last && k == some.to-1 {
				if err := insertSettlements(ctx, db, args, len(row)); err != nil {
					return err
				}
				args = args[:0]
			}
		}
	}
	return nil
}

func insertSettlements(ctx context.Context, db *database.DB, args []any, perRow int) error {
	const columns = `device_id, close_event_id, outcome, digest, order_id, seq, seq_epoch, kind, user_id, priced_at, payload, receipt,
		received_at, settled_at`
	const row = ", (?, ?, 'settled', ?, ?, ?, 0, 'sale', ?, ?, ?, ?, ?, ?)"
	_, err := db.SQL().ExecContext(ctx, "INSERT INTO settlements ("+columns+") VALUES "+strings.Repeat(row, len(args)/perRow)[2:], args...)
	return err
}

// settlement is the row of one event, less what is the same in all.
func (p past) settlement(device, k int) ([]any, error) {
	e, orderID := p.event(device, k)
	payload, err := e.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode event %d/%s: %w", e.DeviceID, e.CloseEventID, err)
	}
	receipt := cabinet.Receipt{
		CloseEventID: e.CloseEventID, DeviceID: e.DeviceID, Outcome: cabinet.Settled, OrderID: strconv.FormatInt(orderID, 10),
		Currency: currency, TotalMinor: perEvent * usual.PriceMinor, Reasons: []cabinet.Reason{}, SettledAt: e.ClosedAt,
	}
	for i := range perEvent {
		receipt.Lines = append(receipt.Lines, cabinet.Line{
			ProductID: productOf(k, i), Quantity: 1, UnitPriceMinor: usual.PriceMinor, AmountMinor: usual.PriceMinor,
		})
	}
	answer, err := receipt.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode the receipt of %d/%s: %w", e.DeviceID, e.CloseEventID, err)
	}
	digest, at := e.Digest(), e.ClosedAt
	return []any{e.DeviceID, e.CloseEventID, digest[:], orderID, e.Seq, e.UserID, at, payload, answer, at, at}, nil
}

// event is the event number k of a cabinet; it and its order have the ids that the statements give them.
func (p past) event(device, k int) (e *cabinet.Event, orderID int64) {
	number := int64(k)*int64(p.cabinets) + int64(device) - 1
	at := p.beganAt.Add(time.Duration(p.intervalS*number) * time.Second)
	ms := at.UnixMilli()
	e = &cabinet.Event{
		CloseEventID: fmt.Sprintf("%08x-%04x-7000-8000-%012x", ms>>16, ms&0xffff, device), DeviceID: int64(device), Kind: cabinet.KindSale,
		UserID: int64(1 + device%users), HasSeq: true, Seq: int64(k + 1), ClosedAt: at, HasItems: true,
	}
	for i := range perEvent {
		e.Items = append(e.Items, cabinet.Item{ProductID: productOf(k, i), Quantity: 1, Confidence: 1})
	}
	slices.SortFunc(e.Items, func(a, b cabinet.Item) int { return int(a.ProductID - b.ProductID) })
	return e, ms<<22 | number&(1<<22-1)
}

func productOf(k, line int) int64 { return int64(1 + (k*perEvent+line)%products) }
