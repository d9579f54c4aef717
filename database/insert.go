package database

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
)

// Insert writes rows, each with a value for every column, in one plain INSERT; suffix may be
// an ON DUPLICATE KEY UPDATE clause. It does nothing where there are no rows.
//
// Numbers, times and NULL stand in the statement itself, text in its parameters: of the many
// values of a group's rows few are left for the driver to convert and to quote.
func Insert(tx *gorm.DB, table string, columns []string, rows [][]any, suffix string) error {
	if len(rows) == 0 {
		return nil
	}
	var statement strings.Builder
	statement.Grow(len(rows) * len(columns) * len("2026-11-30"))
	fmt.Fprintf(&statement, "INSERT INTO %s (%s) VALUES ", table, strings.Join(columns, ", "))
	args := make([]any, 0, len(rows)*len(columns)/2)
	scratch := make([]byte, 0, 64)
	for i, row := range rows {
		if i > 0 {
			statement.WriteByte(',')
		}
		for j, value := range row {
			statement.WriteByte("(,"[min(j, 1)])
			text, isLiteral := appendLiteral(scratch[:0], value)
			statement.Write(text)
			if !isLiteral {
				args = append(args, value)
			}
		}
		statement.WriteByte(')')
	}
	statement.WriteString(" " + suffix)
	if _, err := exec(tx, statement.String(), args...); err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}

// exec runs a statement that is made already, with its parameters as the driver takes them: gorm would go through the text of
// a large group byte by byte to find them.
func exec(tx *gorm.DB, statement string, args ...any) (changed int64, err error) {
	made := tx.Raw("")
	made.Statement.SQL.WriteString(statement)
	made.Statement.Vars = args
	done := made.Callback().Raw().Execute(made)
	return done.RowsAffected, done.Error
}

// sqlTime is how a statement writes a DATETIME(3), always UTC.
const sqlTime = "2006-01-02 15:04:05.000"

// appendLiteral writes a value as it stands in a statement, or the mark of a parameter.
func appendLiteral(text []byte, value any) (_ []byte, isLiteral bool) {
	switch v := value.(type) {
	case nil:
		return append(text, "NULL"...), true
	case int:
		return strconv.AppendInt(text, int64(v), 10), true
	case int64:
		return strconv.AppendInt(text, v, 10), true
	case time.Time:
		text = append(text, '\'')
		text = v.UTC().AppendFormat(text, sqlTime)
		return append(text, '\''), true
	case *int64:
		if v == nil {
			return append(text, "NULL"...), true
		}
		return strconv.AppendInt(text, *v, 10), true
	default:
		return append(text, '?'), false
	}
}
