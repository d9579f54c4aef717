package database

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"gorm.io/gorm"
)

// fewRows is how many rows are found quicker by a condition than by a table of values, which the server makes first: those of an
// event that comes alone.
const fewRows = 4

// ReadEach reads columns of each row that keys find, in one statement without locks; keys hold the primary key. The caller
// closes what it returns.
func ReadEach(tx *gorm.DB, table string, keys []Column, columns []string, rows [][]any) (*sql.Rows, error) {
	return ReadEachBy(tx, table, "PRIMARY", keys, columns, rows)
}

// ReadEachBy is [ReadEach] by another index, which keys hold.
func ReadEachBy(tx *gorm.DB, table, index string, keys []Column, columns []string, rows [][]any) (*sql.Rows, error) {
	text, args := find(table, index, keys, columns, rows)
	found, err := query(tx, len(rows), text, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	return found, nil
}

// ReadIn reads by a statement that ends with the name of a column and, added here, the list of its values, of which there is one at
// least. The caller closes what it returns.
func ReadIn(tx *gorm.DB, text string, ids []int64) (*sql.Rows, error) {
	if len(ids) > fewRows {
		list := []byte(text)
		for i, id := range ids {
			list = append(list, "(,"[min(i, 1)])
			list = strconv.AppendInt(list, id, 10)
		}
		return query(tx, len(ids), string(append(list, ')')))
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return query(tx, len(ids), text+marks(1, len(ids)), args...)
}

// query prepares what finds few rows.
func query(tx *gorm.DB, rows int, text string, args ...any) (*sql.Rows, error) {
	if inside, ok := tx.Statement.ConnPool.(transaction); ok && rows <= fewRows {
		return inside.QueryContext(inside.frequent, text, args...)
	}
	return tx.Statement.ConnPool.QueryContext(tx.Statement.Context, text, args...)
}

// find writes the statement that reads rows by their keys.
func find(table, index string, keys []Column, columns []string, rows [][]any) (text string, args []any) {
	list := "s." + strings.Join(columns, ", s.")
	if len(rows) > fewRows {
		values, parameter := valuesTable(keys, rows)
		return fmt.Sprintf("SELECT %s FROM %s n STRAIGHT_JOIN %s s FORCE INDEX (%s) ON %s", list, values, table, index, equal(keys)),
			[]any{parameter}
	}
	where, args := anyOf(keys, rows)
	return fmt.Sprintf("SELECT %s FROM %s s FORCE INDEX (%s) WHERE %s", list, table, index, where), args
}

// anyOf is the condition that a row has one of some keys.
func anyOf(keys []Column, rows [][]any) (where string, args []any) {
	if len(rows) == 0 {
		return "FALSE", nil
	}
	one := make([]string, len(keys))
	for i, key := range keys {
		one[i] = fmt.Sprintf("s.%s = %s(?)", key.name, key.from)
	}
	for _, row := range rows {
		for _, value := range row {
			args = append(args, plain(value))
		}
	}
	key := strings.Join(one, " AND ")
	return key + strings.Repeat(" OR "+key, len(rows)-1), args
}
