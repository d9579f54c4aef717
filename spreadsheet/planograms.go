package spreadsheet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/fleet"
	"doortab/inventory"
)

var planogramColumns = []string{"deviceId", "lane", "productId", "capacity", "parLevel"}

// WritePlanograms writes every lane of every cabinet, ascending by cabinet and lane.
func WritePlanograms(ctx context.Context, db *database.DB, to io.Writer) error {
	lanes, err := inventory.AllLanes(ctx, db)
	if err != nil {
		return err
	}
	rows := [][]string{planogramColumns}
	for _, l := range lanes {
		rows = append(rows, []string{
			whole(l.DeviceID), whole(l.Lane.Lane), whole(l.ProductID), whole(l.Capacity), whole(l.ParLevel),
		})
	}
	return Write(to, rows)
}

// Planograms counts the cabinets of a file.
type Planograms struct{ Changed, Unchanged int }

// ReadPlanograms replaces the whole planogram of each cabinet that a file names, all of them or none; other cabinets keep
// theirs. It fails with [Problems].
func ReadPlanograms(ctx context.Context, db *database.DB, from io.Reader) (Planograms, error) {
	rows, err := readTable(from, planogramColumns, planogramColumns)
	if err != nil {
		return Planograms{}, err
	}
	wanted, unreadable := map[int64]*planogram{}, map[int]error{}
	for _, r := range rows {
		if err := r.lane(wanted); err != nil {
			unreadable[r.line] = err
		}
	}
	var done Planograms
	err = db.InTx(ctx, func(tx *gorm.DB) error {
		var problems Problems
		done = Planograms{}
		for line, wrong := range unreadable {
			problems.add(line, wrong)
		}
		if err := checkLines(tx, wanted, &problems); err != nil {
			return err
		}
		if err := problems.orNil(); err != nil {
			return err
		}
		return replace(tx, wanted, &done)
	})
	if err != nil {
		return Planograms{}, fmt.Errorf("planograms: %w", err)
	}
	return done, nil
}

// planogram is that of one cabinet, with the line of the file that each lane stands on.
type planogram struct {
	lanes []inventory.Lane
	lines map[int64]int
}

func (r row) lane(wanted map[int64]*planogram) error {
	if r.wrong != nil {
		return r.wrong
	}
	var cells [5]int64
	for i, column := range planogramColumns {
		value, there, err := r.number(column)
		if err == nil && !there {
			err = fmt.Errorf("%s: give a whole number", column)
		}
		if err != nil {
			return err
		}
		cells[i] = value
	}
	lane := inventory.Lane{Lane: cells[1], ProductID: cells[2], Capacity: cells[3], ParLevel: cells[4]}
	if err := lane.Validate(); err != nil {
		return err
	}
	p := wanted[cells[0]]
	if p == nil {
		p = &planogram{lines: map[int64]int{}}
		wanted[cells[0]] = p
	}
	if line, taken := p.lines[lane.Lane]; taken {
		return fmt.Errorf("lane %d of cabinet %d is on line %d already", lane.Lane, cells[0], line)
	}
	if len(p.lanes) == inventory.MaxLanes {
		return fmt.Errorf("cabinet %d has more than %d lanes", cells[0], inventory.MaxLanes)
	}
	p.lanes, p.lines[lane.Lane] = append(p.lanes, lane), r.line
	return nil
}

// checkLines finds cabinets and products that there are none of.
func checkLines(tx *gorm.DB, wanted map[int64]*planogram, problems *Problems) error {
	var ids []int64
	for _, p := range wanted {
		for _, l := range p.lanes {
			ids = append(ids, l.ProductID)
		}
	}
	known, err := inventory.KnownProducts(tx, ids)
	if err != nil {
		return err
	}
	for _, deviceID := range slices.Sorted(maps.Keys(wanted)) {
		p := wanted[deviceID]
		missing := fleet.Hold(tx, deviceID)
		if missing != nil && !errors.Is(missing, fleet.ErrNotFound) {
			return missing
		}
		for _, l := range p.lanes {
			if missing != nil {
				problems.add(p.lines[l.Lane], missing)
			}
			if !known[l.ProductID] {
				problems.add(p.lines[l.Lane], fmt.Errorf("product %d: %w", l.ProductID, inventory.ErrUnknownProduct))
			}
		}
	}
	return nil
}

func replace(tx *gorm.DB, wanted map[int64]*planogram, done *Planograms) error {
	now := database.Now()
	for _, deviceID := range slices.Sorted(maps.Keys(wanted)) {
		_, changed, err := inventory.ReplaceLanes(tx, deviceID, wanted[deviceID].lanes, now)
		switch {
		case err != nil:
			return fmt.Errorf("cabinet %d: %w", deviceID, err)
		case changed:
			done.Changed++
		default:
			done.Unchanged++
		}
	}
	return nil
}
