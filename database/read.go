package database

import (
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// ReadEach reads columns of each row that keys find, in one statement without locks; keys hold the primary key. The caller
// closes what it returns.
func ReadEach(tx *gorm.DB, table string, keys []Column, columns []string, rows [][]any) (*sql.Rows, error) {
	return ReadEachBy(tx, table, "PRIMARY", keys, columns, rows)
}

// ReadEachBy is [ReadEach] by another index, which keys hold.
func ReadEachBy(tx *gorm.DB, table, index string, keys []Column, columns []string, rows [][]any) (*sql.Rows, error) {
	values, parameter := valuesTable(keys, rows)
	found, err := tx.Statement.ConnPool.QueryContext(tx.Statement.Context, fmt.Sprintf("SELECT s.%s FROM %s n STRAIGHT_JOIN %s s FORCE INDEX (%s) ON %s",
		strings.Join(columns, ", s."), values, table, index, equal(keys)), parameter)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", table, err)
	}
	return found, nil
}
