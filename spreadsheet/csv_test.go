package spreadsheet

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// scan reads all records of a text; a line that can't be read is its error.
func scan(text string) (cells [][]string, lines []int, errs []string) {
	s := &scanner{text: text, line: 1}
	for {
		rec, more, err := s.next()
		switch {
		case !more:
			return cells, lines, errs
		case err != nil:
			errs = append(errs, err.Error())
		default:
			cells, lines = append(cells, rec.cells), append(lines, rec.line)
		}
	}
}

func TestLinesAreSplitAsRFC4180Says(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		cells [][]string
		lines []int
	}{
		"LF":                     {"a,b\nc,d\n", [][]string{{"a", "b"}, {"c", "d"}}, []int{1, 2}},
		"CRLF, no last one":      {"a,b\r\nc,d", [][]string{{"a", "b"}, {"c", "d"}}, []int{1, 2}},
		"CR":                     {"a,b\rc,d\r", [][]string{{"a", "b"}, {"c", "d"}}, []int{1, 2}},
		"empty lines":            {"\n\r\na\n\n\nb\n", [][]string{{"a"}, {"b"}}, []int{3, 6}},
		"empty cells":            {",\n,,a\n", [][]string{{"", ""}, {"", "", "a"}}, []int{1, 2}},
		"quotes":                 {`"a ""b"", c",""` + "\n", [][]string{{`a "b", c`, ""}}, []int{1}},
		"line breaks in a cell":  {"\"a\r\nb\nc\rd\"\ne", [][]string{{"a\r\nb\nc\rd"}, {"e"}}, []int{1, 5}},
		"spaces are kept":        {" a , b\n", [][]string{{" a ", " b"}}, []int{1}},
		"nothing":                {"", nil, nil},
		"an apostrophe is plain": {"'a\n", [][]string{{"'a"}}, []int{1}},
	} {
		cells, lines, errs := scan(c.text)
		if diff := cmp.Diff(c.cells, cells) + cmp.Diff(c.lines, lines); diff != "" || len(errs) != 0 {
			t.Errorf("%s: %v %s", name, errs, diff)
		}
	}
	for name, c := range map[string]struct {
		text string
		errs int
		read int
	}{
		"a quote inside":           {"a\"b,c\nd\n", 1, 1},
		"text behind a quote":      {"\"a\"b,c\nd\n", 1, 1},
		"a quote that isn't ended": {"a\n\"b\nc\n", 1, 1},
		"two of them":              {"a\"\nb\"\nc", 2, 1},
	} {
		if cells, _, errs := scan(c.text); len(errs) != c.errs || len(cells) != c.read {
			t.Errorf("%s: read %q, errors %q", name, cells, errs)
		}
	}
}

func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "＠x", "'=1", "''=1", "=", "-"} {
		cell := Text(value)
		if cell[0] != '\'' || plainText(cell) != value {
			t.Errorf("%q is written %q and read %q", value, cell, plainText(cell))
		}
	}
	for _, value := range []string{"", "'n Dag", "Cola", "1-2", "水", " =1"} {
		if cell := Text(value); cell != value || plainText(cell) != value {
			t.Errorf("%q is written %q and read %q", value, cell, plainText(cell))
		}
	}
}

func FuzzWhatIsWrittenIsRead(f *testing.F) {
	f.Add("a", "=1", `"`)
	f.Add("", "a\r\nb", "\r")
	f.Add("'", "''=", ",")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		row := []string{a, b, c}
		var text bytes.Buffer
		cells := make([]string, 3)
		for i, value := range row {
			if !utf8.ValidString(value) {
				t.Skip()
			}
			cells[i] = Text(value)
		}
		if err := Write(&text, [][]string{cells}); err != nil {
			t.Fatal(err)
		}
		got, _, errs := scan(text.String())
		if len(errs) != 0 || len(got) != 1 {
			t.Fatalf("%q is read as %q, %q", text.String(), got, errs)
		}
		for i := range got[0] {
			got[0][i] = plainText(got[0][i])
		}
		if diff := cmp.Diff(row, got[0]); diff != "" {
			t.Error(diff)
		}
	})
}

func FuzzAnyTextIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{"sku,name\na,b\n", "\uFEFFsku\n\"", "sku,sku\n", "\xff", "sku\r\r\n\"a\"\"\"b\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rows, err := readTable(strings.NewReader(text), productColumns, nil)
		if err == nil && len(rows) > strings.Count(text, "\n")+strings.Count(text, "\r")+1 {
			t.Errorf("%q has %d rows", text, len(rows))
		}
	})
}
