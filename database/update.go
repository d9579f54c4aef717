package database

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// UpdateEach gives each row that its keys find values of its own, in one statement, and
// returns how many rows that changed. A row of rows holds the keys, then the values; a column
// may be both, as the version of a guarded update. Locks are taken in the order of rows: their
// derived table comes first in the join.
func UpdateEach(tx *gorm.DB, table string, keys, set []string, rows [][]any) (int64, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	width := len(keys) + len(set)
	named, on, to := make([]string, width), make([]string, len(keys)), make([]string, len(set))
	for i := range named {
		named[i] = fmt.Sprintf("? AS c%d", i)
	}
	for i, key := range keys {
		on[i] = fmt.Sprintf("s.%s = n.c%d", key, i)
	}
	for i, column := range set {
		to[i] = fmt.Sprintf("s.%s = n.c%d", column, len(keys)+i)
	}
	list := "SELECT " + strings.Join(named, ", ") + strings.Repeat(" UNION ALL SELECT ?"+strings.Repeat(", ?", width-1), len(rows)-1)
	args := make([]any, 0, len(rows)*width)
	for _, row := range rows {
		args = append(args, row...)
	}
	result := tx.Exec(fmt.Sprintf("UPDATE (%s) n STRAIGHT_JOIN %s s ON %s SET %s",
		list, table, strings.Join(on, " AND "), strings.Join(to, ", ")), args...)
	if result.Error != nil {
		return 0, fmt.Errorf("update %s: %w", table, result.Error)
	}
	return result.RowsAffected, nil
}
