package database

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// UpdateAll is [UpdateEach] for rows each of which must still be as keys say; [ErrConflict] where one isn't.
func UpdateAll(tx *gorm.DB, table string, keys, set []Column, rows [][]any) error {
	changed, err := UpdateEach(tx, table, keys, set, rows)
	if err == nil && changed != int64(len(rows)) {
		err = fmt.Errorf("update %s: %d of %d rows: %w", table, changed, len(rows), ErrConflict)
	}
	return err
}

// UpdateEach gives each row that its keys find values of its own, in one statement, and
// returns how many rows that changed. A row of rows holds the keys, then the values; a column
// may be both, as the version of a guarded update. The keys hold the primary key. Locks are
// taken in the order of rows, since their table comes first in the join, and on no other row:
// the index is forced because a small table would be scanned.
func UpdateEach(tx *gorm.DB, table string, keys, set []Column, rows [][]any) (int64, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	to := make([]string, len(set))
	for i, column := range set {
		to[i] = fmt.Sprintf("s.%s = n.c%d", column.name, len(keys)+i)
	}
	values, parameter := valuesTable(slices.Concat(keys, set), rows)
	changed, err := exec(tx, fmt.Sprintf("UPDATE %s n STRAIGHT_JOIN %s s FORCE INDEX (PRIMARY) ON %s SET %s",
		values, table, equal(keys), strings.Join(to, ", ")), []any{parameter})
	if err != nil {
		return 0, fmt.Errorf("update %s: %w", table, err)
	}
	return changed, nil
}

// alikeRows is how many rows a prepared [UpdateAlike] takes; what is left of a list is filled up with its last row. One of no more
// than [fewRows] takes as many as there are.
const alikeRows = 200

// UpdateAlike gives all of so many rows that keys find one change, and returns how many that changed. keys begin with the primary
// key, and fill fills those of a row, counted from 0; set is what stands behind SET, with values for its parameters. It costs the
// server less than [UpdateEach] where rows are [AlikePays].
func UpdateAlike(
	tx *gorm.DB, table, set string, values []driver.Value, keys []string, rows int, fill func(row int, keys []driver.Value),
) (changed int64, err error) {
	if rows == 0 {
		return 0, nil
	}
	size := alikeRows
	if rows <= fewRows {
		size = rows
	}
	text := fmt.Sprintf("UPDATE %s FORCE INDEX (PRIMARY) SET %s WHERE (%s) IN (%s)", table, set, strings.Join(keys, ", "),
		marks(size, len(keys)))
	all := append(slices.Clone(values), make([]driver.Value, size*len(keys))...)
	for first := 0; first < rows; first += size {
		for i := range size {
			fill(min(first+i, rows-1), all[len(values)+i*len(keys):][:len(keys)])
		}
		n, err := execPrepared(tx, text, all)
		if err != nil {
			return 0, fmt.Errorf("update %s: %w", table, err)
		}
		changed += n
	}
	return changed, nil
}

// AlikePays tells whether so many rows with one change, of all that a group writes, are worth a statement of their own.
func AlikePays(alike, all int) bool { return alike >= alikeRows/2 || alike == all && all <= fewRows }
