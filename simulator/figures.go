package simulator

import (
	"fmt"
	"io"
	"slices"

	"doortab/cabinet"
	"doortab/simulator/physical"
)

// Figures say how well one kind of cabinet told what truly happened.
type Figures struct {
	Kind     physical.Kind
	Cabinets int64
	Doors    int64 // with a receipt; of shoppers and of staff
	Settled  int64 // orders that nobody looked at
	Wrong    int64 // of these, orders that charged something else than was taken
	Missed   int64 // doors that ended without an order and without a review although something was taken
	Reviews  int64 // doors that a person must decide, but for the Unattributed
	// Unattributed are doors that a person must decide only because nobody knows who the shopper was.
	Unattributed int64

	Rows       int64 // of book stock at the end; those of cabinets with events that are pending are left out
	RowsOff    int64 // of these, ones that aren't what is in the cabinet
	UnitsOff   int64 // by how many units in all
	UnitsThere int64 // units in the cabinets
}

// figures compares outcomes and books with the physical truth.
func (s *Simulator) figures(want expected, got *theirs) []Figures {
	of := make(map[physical.Kind]*Figures, len(physical.Kinds))
	for _, kind := range physical.Kinds {
		of[kind] = &Figures{Kind: kind}
	}
	for i := range want.entries {
		of[want.entries[i].kind].door(&want.entries[i])
	}
	for _, d := range s.fleet {
		f := of[d.kind()]
		f.Cabinets++
		units, _ := d.content()
		for productID, there := range units {
			if !want.unsettled[d.id] {
				f.row(got.stock[stockKey{d.id, productID}].stock, there)
			}
		}
	}
	var list []Figures
	for _, kind := range physical.Kinds {
		if of[kind].Cabinets > 0 {
			list = append(list, *of[kind])
		}
	}
	return list
}

func (f *Figures) door(e *entry) {
	if !e.answered {
		return
	}
	f.Doors++
	right := slices.Equal(e.charged, e.truth)
	switch e.outcome {
	case cabinet.Settled:
		f.Settled++
		if !right {
			f.Wrong++
		}
	case cabinet.Empty:
		if !right {
			f.Missed++
		}
	case cabinet.Review:
		if e.unattributed {
			f.Unattributed++
		} else {
			f.Reviews++
		}
	}
}

func (f *Figures) row(booked, there int64) {
	f.Rows++
	f.UnitsThere += there
	if off := booked - there; off != 0 {
		f.RowsOff++
		f.UnitsOff += max(off, -off)
	}
}

const (
	figuresHead = "kind    cabinets    doors  settled  wrong charges  missed  reviews  share   nobody known  stock rows off   units off\n"
	figuresRow  = "%-6s  %8d  %7d  %7d  %13s  %6d  %7d  %5.2f%%  %12d  %6d of %-6d  %8.2f%%\n"
)

func writeFigures(w io.Writer, list []Figures) error {
	if len(list) == 0 {
		return nil
	}
	if _, err := io.WriteString(w, figuresHead); err != nil {
		return err
	}
	for _, f := range list {
		wrong := fmt.Sprintf("%d (%.2f%%)", f.Wrong, percent(f.Wrong, f.Settled))
		_, err := fmt.Fprintf(w, figuresRow, f.Kind, f.Cabinets, f.Doors, f.Settled, wrong, f.Missed, f.Reviews,
			percent(f.Reviews, f.Doors), f.Unattributed, f.RowsOff, f.Rows, percent(f.UnitsOff, f.UnitsThere))
		if err != nil {
			return err
		}
	}
	return nil
}

func percent(part, whole int64) float64 { return 100 * float64(part) / float64(max(whole, 1)) }
