package database

import (
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// Insert writes rows, each with a value for every column, in one plain INSERT; suffix may be
// an ON DUPLICATE KEY UPDATE clause. It does nothing where there are no rows.
func Insert(tx *gorm.DB, table string, columns []string, rows [][]any, suffix string) error {
	if len(rows) == 0 {
		return nil
	}
	row := ", (?" + strings.Repeat(", ?", len(columns)-1) + ")"
	var statement strings.Builder
	fmt.Fprintf(&statement, "INSERT INTO %s (%s) VALUES ", table, strings.Join(columns, ", "))
	statement.WriteString(row[2:])
	for range len(rows) - 1 {
		statement.WriteString(row)
	}
	statement.WriteString(" " + suffix)
	args := make([]any, 0, len(rows)*len(columns))
	for _, r := range rows {
		args = append(args, r...)
	}
	if err := tx.Exec(statement.String(), args...).Error; err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}
