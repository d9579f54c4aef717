package database

import (
	"database/sql"
	"fmt"
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
	found, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, text, args...)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	return found, nil
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
