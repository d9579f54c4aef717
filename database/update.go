package database

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
)

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
	changed, err := execPrepared(tx, fmt.Sprintf("UPDATE %s n STRAIGHT_JOIN %s s FORCE INDEX (PRIMARY) ON %s SET %s",
		values, table, equal(keys), strings.Join(to, ", ")), []any{parameter})
	if err != nil {
		return 0, fmt.Errorf("update %s: %w", table, err)
	}
	return changed, nil
}

// alikeRows is how many rows a prepared [UpdateAlike] takes; what is left of a list is filled up with its last row.
const alikeRows = 200

// UpdateAlike gives all rows that keys find one change, and returns how many that changed. keys begin with the primary key and
// are whole numbers; set is what stands behind SET, with values for its parameters. It costs the server less than [UpdateEach]
// from about a hundred rows on.
func UpdateAlike(tx *gorm.DB, table, set string, values []any, keys []string, rows [][]any) (changed int64, err error) {
	row := ",(?" + strings.Repeat(",?", len(keys)-1) + ")"
	statement := fmt.Sprintf("UPDATE %s FORCE INDEX (PRIMARY) SET %s WHERE (%s) IN (%s)", table, set, strings.Join(keys, ", "),
		strings.Repeat(row, alikeRows)[1:])
	for some := range slices.Chunk(rows, alikeRows) {
		args := slices.Grow(slices.Clone(values), alikeRows*len(keys))
		for i := range alikeRows {
			args = append(args, some[min(i, len(some)-1)]...)
		}
		n, err := execPrepared(tx, statement, args)
		if err != nil {
			return 0, fmt.Errorf("update %s: %w", table, err)
		}
		changed += n
	}
	return changed, nil
}
