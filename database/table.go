package database

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Column is a column whose values [ReadEach] or [UpdateEach] takes, with its type.
type Column struct{ name, kind, from string }

func (c Column) as(n int) string { return fmt.Sprintf("c%d %s PATH '$[%d]'", n, c.kind, n) }

// Int is a column of whole numbers.
func Int(name string) Column { return Column{name: name, kind: "BIGINT"} }

// Time is a column of times, kept to the millisecond.
func Time(name string) Column { return Column{name: name, kind: "DATETIME(3)"} }

// Text is a column of up to 1000 characters in the collation that every table has.
func Text(name string) Column {
	return Column{name: name, kind: "VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"}
}

// Code is a column of up to 64 characters of ASCII, as event ids are.
func Code(name string) Column {
	return Column{name: name, kind: "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin"}
}

// Document is a column of JSON text.
func Document(name string) Column { return Column{name: name, kind: "LONGTEXT"} }

// Hex is a column of up to 32 bytes, whose values are given in hex.
func Hex(name string) Column {
	return Column{name: name, kind: "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin", from: "UNHEX"}
}

// valuesTable makes rows, each with a value for every column, a table of one statement: what it returns stands behind FROM or
// UPDATE, with the rows as its one parameter. Its columns are c0, c1 and so on.
//
// To the server it is one text, whatever the number of rows: a list of tuples behind IN is planned row by row, in time that
// grows with its square, and a UNION of rows is parsed as that many queries.
func valuesTable(columns []Column, rows [][]any) (table, parameter string) {
	var paths strings.Builder
	for i, column := range columns {
		if i > 0 {
			paths.WriteString(", ")
		}
		paths.WriteString(column.as(i))
	}
	text := make([]byte, 0, len(rows)*len(columns)*8)
	text = append(text, '[')
	for i, row := range rows {
		if i > 0 {
			text = append(text, ',')
		}
		for j, value := range row {
			text = append(text, "[,"[min(j, 1)])
			text = appendJSON(text, value)
		}
		text = append(text, ']')
	}
	return "JSON_TABLE(?, '$[*]' COLUMNS (" + paths.String() + "))", string(append(text, ']'))
}

// equal joins a table s to the rows n of [valuesTable] by keys, their first columns.
func equal(keys []Column) string {
	on := make([]string, len(keys))
	for i, key := range keys {
		on[i] = fmt.Sprintf("s.%s = %s(n.c%d)", key.name, key.from, i)
	}
	return strings.Join(on, " AND ")
}

func appendJSON(text []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(text, "null"...)
	case int:
		return strconv.AppendInt(text, int64(v), 10)
	case int64:
		return strconv.AppendInt(text, v, 10)
	case time.Time:
		text = append(text, '"')
		return append(v.UTC().AppendFormat(text, sqlTime), '"')
	case []byte:
		return appendJSON(text, string(v))
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return append(text, "null"...)
		}
		return appendJSON(text, v.Elem().Interface())
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		panic(err) // a value that no column can hold
	}
	return append(text, quoted...)
}
