package database

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
)

// preparedRows are how many rows the prepared INSERTs take, beside those of 1 to [fewRows]. What is left of a group goes by one whose
// text holds its values, so that it costs one round trip.
var preparedRows = []int{200, 40}

// Insert writes rows, each with a value for every column, in their order, by plain INSERTs; suffix may be an ON DUPLICATE KEY
// UPDATE clause. It does nothing where there are no rows. It must run in a transaction.
func Insert(tx *gorm.DB, table string, columns []string, rows [][]any, suffix string) error {
	return InsertEach(tx, table, columns, len(rows), suffix, func(row int, values []driver.Value) {
		for i, value := range rows[row] {
			values[i] = plain(value)
		}
	})
}

// InsertEach is [Insert] of so many rows that are nowhere made as such: fill fills the values of a row, counted from 0, with int64,
// string, []byte, [time.Time] or nil.
func InsertEach(
	tx *gorm.DB, table string, columns []string, rows int, suffix string, fill func(row int, values []driver.Value),
) (err error) {
	text := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES "
	done := 0
	prepared := func(size int) {
		done, err = insertPrepared(tx, text+marks(size, len(columns))+" "+suffix, len(columns), size, done, rows, fill)
	}
	for _, size := range preparedRows {
		if err == nil && rows-done >= size {
			prepared(size)
		}
	}
	switch left := rows - done; {
	case err != nil || left == 0:
	case left <= fewRows:
		prepared(left)
	default:
		err = insertText(tx, text, suffix, len(columns), done, rows, fill)
	}
	if err != nil {
		return fmt.Errorf("insert into %s: %w", table, err)
	}
	return nil
}

// insertPrepared writes what fills whole statements of so many rows, and returns how many rows are done then.
func insertPrepared(
	tx *gorm.DB, text string, columns, size, done, rows int, fill func(row int, values []driver.Value),
) (int, error) {
	values := make([]driver.Value, size*columns)
	for ; rows-done >= size; done += size {
		for i := range size {
			fill(done+i, values[i*columns:][:columns])
		}
		if _, err := execPrepared(tx, text, values); err != nil {
			return 0, err
		}
	}
	return done, nil
}

// marks are so many rows of marks of parameters: (?,?),(?,?).
func marks(rows, columns int) string {
	row := ",(?" + strings.Repeat(",?", columns-1) + ")"
	return strings.Repeat(row, rows)[1:]
}

// insertText leaves text to parameters; numbers, times and NULL stand in the statement itself, so that few values are left for
// the driver to convert and to quote.
func insertText(tx *gorm.DB, begin, suffix string, columns, first, rows int, fill func(row int, values []driver.Value)) error {
	text := make([]byte, 0, len(begin)+(rows-first)*columns*len("2026-11-30"))
	text = append(text, begin...)
	var args []any
	values := make([]driver.Value, columns)
	for row := first; row < rows; row++ {
		fill(row, values)
		for i, value := range values {
			text = append(text, "(,"[min(i, 1)])
			var isLiteral bool
			if text, isLiteral = appendLiteral(text, value); !isLiteral {
				args = append(args, value)
			}
		}
		text = append(text, "),"...)
	}
	_, err := exec(tx, string(text[:len(text)-1])+" "+suffix, args)
	return err
}

// sqlTime is how a statement writes a DATETIME(3), always UTC.
const sqlTime = "2006-01-02 15:04:05.000"

// appendLiteral writes a value as it stands in a statement, or the mark of a parameter.
func appendLiteral(text []byte, value driver.Value) (_ []byte, isLiteral bool) {
	switch v := value.(type) {
	case nil:
		return append(text, "NULL"...), true
	case int64:
		return strconv.AppendInt(text, v, 10), true
	case time.Time:
		text = append(text, '\'')
		text = v.UTC().AppendFormat(text, sqlTime)
		return append(text, '\''), true
	default:
		return append(text, '?'), false
	}
}

// plain makes what columns are given what a driver takes.
func plain(value any) driver.Value {
	switch v := value.(type) {
	case nil, int64, string, []byte, time.Time:
		return v
	case int:
		return int64(v)
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plain(v.Elem().Interface())
	case reflect.String:
		return v.String()
	case reflect.Slice:
		return v.Bytes()
	default:
		return value // left to the driver
	}
}
