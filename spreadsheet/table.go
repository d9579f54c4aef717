package spreadsheet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// shownErrors bounds how many lines one error names.
const shownErrors = 100

// Problems is everything that is wrong with a file; nothing of it was imported.
type Problems struct {
	byLine map[int][]string
	count  int
}

func (p *Problems) add(line int, err error) {
	if p.byLine == nil {
		p.byLine = map[int][]string{}
	}
	p.byLine[line] = append(p.byLine[line], err.Error())
	p.count++
}

// orNil is nil where nothing is wrong.
func (p *Problems) orNil() error {
	if p.count == 0 {
		return nil
	}
	return p
}

// Error lists the problems by line, one a line, up to a hundred.
func (p *Problems) Error() string {
	var text strings.Builder
	text.WriteString("nothing was imported:")
	lines := make([]int, 0, len(p.byLine))
	for line := range p.byLine {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	shown := 0
	for _, line := range lines {
		for _, what := range p.byLine[line] {
			if shown == shownErrors {
				fmt.Fprintf(&text, "\nand %d more", p.count-shown)
				return text.String()
			}
			fmt.Fprintf(&text, "\nline %d: %s", line, what)
			shown++
		}
	}
	return text.String()
}

// row is a record whose cells are known by their columns.
type row struct {
	line  int
	cells map[string]string
	wrong error // why it can't be read; nil for one that can
}

// readTable reads a file whose first line names columns, in any order: all of required, and others of known. Lines that can't
// be read are among the rows, so that they are told together with whatever else is wrong.
func readTable(from io.Reader, known, required []string) ([]row, error) {
	text, err := readAll(from)
	if err != nil {
		return nil, err
	}
	s := &scanner{text: text, line: 1}
	header, more, err := s.next()
	if err == nil && !more {
		err = errors.New("file is empty")
	}
	if err == nil {
		err = checkHeader(header.cells, known, required)
	}
	if err != nil {
		return nil, fmt.Errorf("line 1 is to name the columns %s: %w", strings.Join(known, ","), err)
	}
	var rows []row
	for {
		rec, more, err := s.next()
		switch {
		case !more:
			return rows, nil
		case err == nil && len(rec.cells) != len(header.cells):
			err = fmt.Errorf("%d cells, the first line has %d", len(rec.cells), len(header.cells))
		}
		if err != nil {
			rows = append(rows, row{line: rec.line, wrong: err})
			continue
		}
		cells := make(map[string]string, len(rec.cells))
		for i, cell := range rec.cells {
			cells[header.cells[i]] = cell
		}
		rows = append(rows, row{line: rec.line, cells: cells})
	}
}

func checkHeader(names, known, required []string) error {
	for i, name := range names {
		switch {
		case !slices.Contains(known, name):
			return fmt.Errorf("%q is none of them", name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("%q is there twice", name)
		}
	}
	for _, name := range required {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%q is missing", name)
		}
	}
	return nil
}

// number reads a whole number. It is false where the column is left out or the cell is empty.
func (r row) number(column string) (value int64, there bool, err error) {
	cell := strings.TrimSpace(r.cells[column])
	if cell == "" {
		return 0, false, nil
	}
	value, err = strconv.ParseInt(cell, 10, 64)
	if err != nil || cell[0] == '+' {
		return 0, false, fmt.Errorf("%s %q: give a whole number", column, clip(cell))
	}
	return value, true, nil
}

func clip(text string) string {
	if runes := []rune(text); len(runes) > 50 {
		return string(runes[:50]) + "…"
	}
	return text
}
