package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"doortab/cabinet"
)

// receiptDifferences says what the stored receipt claims otherwise than the rows of origin settlement: an order that only a
// review made came after the receipt, which is never rewritten (R15).
func (s *settlement) receiptDifferences() []string {
	var r cabinet.Receipt
	if err := json.Unmarshal(s.receipt, &r); err != nil {
		return []string{"can't be read: " + err.Error()}
	}
	var found []string
	compare := func(field string, got, want any) {
		if got != want {
			found = append(found, fmt.Sprintf("%s %v, rows say %v", field, got, want))
		}
	}
	orderID, currency := "", r.Currency
	if len(s.lines) > 0 {
		orderID, currency = strconv.FormatInt(s.order.V, 10), s.currency.V
	}
	compare("closeEventId", r.CloseEventID, s.event)
	compare("deviceId", r.DeviceID, s.device)
	compare("outcome", string(r.Outcome), s.outcome)
	compare("duplicate", r.Duplicate, false)
	compare("orderId", strconv.Quote(r.OrderID), strconv.Quote(orderID))
	compare("currency", r.Currency, currency)
	compare("totalMinor", r.TotalMinor, total(s.lines))
	compare("settledAt", instant(r.SettledAt), instant(s.settledAt))
	if !sameLines(r.Lines, s.lines) {
		found = append(found, fmt.Sprintf("lines %s, rows say %s", inWords(r.Lines), inWords(s.lines)))
	}
	return found
}

func inWords(lines []cabinet.Line) string {
	words := make([]string, len(lines))
	for i, l := range lines {
		words[i] = fmt.Sprintf("product %d: %d x %d = %d", l.ProductID, l.Quantity, l.UnitPriceMinor, l.AmountMinor)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func total(lines []cabinet.Line) int64 {
	var sum int64
	for _, l := range lines {
		sum += l.AmountMinor
	}
	return sum
}

// sameLines compares without order: which line stands first is no fact.
func sameLines(a, b []cabinet.Line) bool {
	return slices.Equal(slices.SortedFunc(slices.Values(a), compareLines), slices.SortedFunc(slices.Values(b), compareLines))
}

func compareLines(a, b cabinet.Line) int {
	return cmp.Or(
		cmp.Compare(a.ProductID, b.ProductID), cmp.Compare(a.Quantity, b.Quantity),
		cmp.Compare(a.UnitPriceMinor, b.UnitPriceMinor), cmp.Compare(a.AmountMinor, b.AmountMinor))
}
