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
