package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Report is what a run measured, part by part in their order.
type Report struct {
	Quick   bool
	results []result
}

type result struct {
	part   part
	figure Figure
}

// Empty tells that no part ran to its end.
func (r Report) Empty() bool { return len(r.results) == 0 }

// WriteJSON writes one object with a member for each part that ran, named after it.
func (r Report) WriteJSON(w io.Writer) error {
	var text bytes.Buffer
	text.WriteString("{")
	for i, result := range r.results {
		figure, err := json.Marshal(result.figure)
		if err != nil {
			return fmt.Errorf("write the figure of %s: %w", result.part.name, err)
		}
		if i > 0 {
			text.WriteString(",")
		}
		_, _ = fmt.Fprintf(&text, "%q:%s", result.part.name, figure)
	}
	text.WriteString("}\n")
	_, err := w.Write(text.Bytes())
	return err
}

// WriteTable writes a row for each part and one for each figure of it that has a goal.
func (r Report) WriteTable(w io.Writer) error {
	rows := [][]string{{"figure", "Doortab", "usual design", "ratio", "must", "aim", "met"}}
	for _, result := range r.results {
		rows = append(rows, result.rows()...)
	}
	text := align(rows)
	if r.Quick {
		text += "\nQuick: short slices on little data. Leave --quick out for figures to quote.\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func (r result) rows() [][]string {
	f := r.figure
	rows := [][]string{{r.part.name + ", " + f.Unit, short(f.Doortab), short(f.Usual), short(f.Ratio), "", "", ""}}
	for _, g := range r.part.goals {
		sign := "≥ "
		if g.most {
			sign = "≤ "
		}
		rows = append(rows, []string{"  " + g.label, short(g.value(f)), "", "", sign + short(g.must), sign + short(g.aim), g.verdict(f)})
	}
	return rows
}

// align writes words to the left of their columns and numbers to the right.
func align(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 || i == len(row)-1 {
				line += cell + padding + "  "
			} else {
				line += padding + cell + "  "
			}
		}
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return text.String()
}

// short keeps three significant digits, and whole numbers whole.
func short(value float64) string {
	if value >= 100 || value == float64(int64(value)) {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}
