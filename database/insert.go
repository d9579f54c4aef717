package database

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
)

// preparedRows is how many rows a prepared INSERT takes. A server parses such a statement once for each connection; what is
// left of a group goes by one whose text holds its values, so that a few rows cost one round trip.
const preparedRows = 200

// Insert writes rows, each with a value for every column, in their order, by plain INSERTs; suffix may be an ON DUPLICATE KEY
// UPDATE clause. It does nothing where there are no rows. It must run in a transaction.
func Insert(tx *gorm.DB, table string, columns []string, rows [][]any, suffix string) (err error) {
	for ; err == nil && len(rows) >= preparedRows; rows = rows[preparedRows:] {
		err = insertPrepared(tx, table, columns, rows[:preparedRows], suffix)
	}
	if err == nil && len(rows) > 0 {
		err = insertText(tx, table, columns, rows, suffix)
	}
	if err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}

func insertPrepared(tx *gorm.DB, table string, columns []string, rows [][]any, suffix string) error {
	row := ",(?" + strings.Repeat(",?", len(columns)-1) + ")"
	statement := fmt.Sprintf("INSERT INTO %s (%s) VALUES %s %s", table, strings.Join(columns, ", "),
		strings.Repeat(row, len(rows))[1:], suffix)
	args := make([]any, 0, len(rows)*len(columns))
	for _, r := range rows {
		args = append(args, r...)
	}
	_, err := execPrepared(tx, statement, args)
	return err
}

// insertText leaves text to parameters; numbers, times and NULL stand in the statement itself, so that few values are left for
// the driver to convert and to quote.
func insertText(tx *gorm.DB, table string, columns []string, rows [][]any, suffix string) error {
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
	_, err := exec(tx, tx.Statement.ConnPool, statement.String(), args)
	return err
}

// exec runs a statement that is made already, with its parameters as the driver takes them: gorm would go through the text of
// a large group byte by byte to find them.
func exec(tx *gorm.DB, pool gorm.ConnPool, statement string, args []any) (changed int64, err error) {
	made := tx.Raw("")
	made.Statement.ConnPool = pool
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
