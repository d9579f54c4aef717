package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// pageRows is how many rows of a table and its archive are read at a time.
const pageRows = 2000

// spread is a table of which a part may lie in an archive of the same shape. Both are read as one, in the order of the
// primary key, a page at a time: no index leads through the two of them at once.
type spread struct {
	table   string
	key     []string
	columns string // without the key
}

// page is a derived table of the rows behind a place, with the column archived.
func (s spread) page() string {
	key := strings.Join(s.key, ", ")
	part := func(table, archived string) string {
		return fmt.Sprintf("(SELECT %s, %s, %s AS archived FROM %s FORCE INDEX (PRIMARY) WHERE %s ORDER BY %s LIMIT %d)",
			key, s.columns, archived, table, s.behind(), key, pageRows)
	}
	return fmt.Sprintf("(SELECT * FROM (%s UNION ALL %s) both_tables ORDER BY %s, archived LIMIT %d)",
		part(s.table, "FALSE"), part(s.table+"_archive", "TRUE"), key, pageRows)
}

// behind is the condition of one range of the primary key for each of its columns.
func (s spread) behind() string {
	ranges := make([]string, len(s.key))
	for i := range s.key {
		ranges[i] = strings.Join(append(slices.Clone(s.key[:i]), s.key[i]+" > ?"), " = ? AND ")
	}
	return "(" + strings.Join(ranges, " OR ") + ")"
}

// args are what behind asks for, first in the live part of a page and then in the archived one. Where the place is a live row's,
// an archived row of the same key still lies behind it.
func (s spread) args(place []int64, archived bool) (list []any) {
	before := slices.Clone(place)
	if !archived {
		before[len(before)-1]--
	}
	for _, from := range [][]int64{place, before} {
		for i := range s.key {
			for _, value := range from[:i+1] {
				list = append(list, value)
			}
		}
	}
	return list
}

// eachOf reads a query over a page, page after page. The query gives whether the page's row is archived, then the key, which
// goes to place, then the rest; each row of a page may be joined to several.
func (a *auditor) eachOf(ctx context.Context, s spread, query string, place []*int64, archived *bool, rest []any, visit func()) error {
	row := []any{archived}
	for _, p := range place {
		row = append(row, p)
	}
	row = append(row, rest...)
	last, wasArchived := make([]int64, len(place)), true
	for {
		rows := 0
		err := a.each(ctx, query, row, func() {
			if moved := step(last, place); rows == 0 || moved || *archived != wasArchived {
				rows++
				a.count(s.table, *archived)
			}
			wasArchived = *archived
			visit()
		}, s.args(last, wasArchived)...)
		if err != nil || rows < pageRows {
			return err
		}
	}
}

// step brings last to where place is, and tells whether that is another one.
func step(last []int64, place []*int64) (moved bool) {
	for i, p := range place {
		moved = moved || last[i] != *p
		last[i] = *p
	}
	return moved
}

// Read says how many rows of a table an audit has read.
type Read struct {
	Table    string
	Live     int64
	Archived int64
}

func (a *auditor) count(table string, archived bool) {
	i := slices.IndexFunc(a.read, func(r Read) bool { return r.Table == table })
	if i < 0 {
		i = len(a.read)
		a.read = append(a.read, Read{Table: table})
	}
	if archived {
		a.read[i].Archived++
	} else {
		a.read[i].Live++
	}
}

// inWhich names the table that a row lies in.
func (s spread) inWhich(archived bool) string {
	if archived {
		return s.table + "_archive"
	}
	return s.table
}
