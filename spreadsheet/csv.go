// Package spreadsheet reads and writes products and planograms as CSV (RFC 4180), for people who keep them in a
// spreadsheet. A file that was exported and is imported again changes nothing.
package spreadsheet

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxFile is the most bytes of a file that is read.
const maxFile = 64 << 20

const byteOrderMark = "\uFEFF" // spreadsheets put it before UTF-8

// formula is a cell that a spreadsheet would work out instead of showing it, behind any apostrophes
// (OWASP, "CSV Injection").
var formula = regexp.MustCompile(`^'*[=+\-@\t\r\n＝＋－＠]`)

// Text makes a cell of a text that people chose: an apostrophe before what a spreadsheet would take for a formula.
func Text(value string) string {
	if formula.MatchString(value) {
		return "'" + value
	}
	return value
}

// plainText takes back what [Text] did.
func plainText(cell string) string {
	if cell != "" && cell[0] == '\'' && formula.MatchString(cell) {
		return cell[1:]
	}
	return cell
}

// Write writes rows of cells as lines.
func Write(to io.Writer, rows [][]string) error {
	var text bytes.Buffer
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				text.WriteByte(',')
			}
			text.WriteString(quoted(cell))
		}
		text.WriteString("\r\n")
	}
	_, err := to.Write(text.Bytes())
	return err
}

func quoted(cell string) string {
	if !strings.ContainsAny(cell, ",\"\r\n") {
		return cell
	}
	return `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
}

// record is one line of a file, or several where a quoted cell has line breaks.
type record struct {
	line  int // its first, from 1
	cells []string
}

// readAll reads a file without its byte order mark. It fails on text that is not UTF-8, naming the line.
func readAll(from io.Reader) (string, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return "", fmt.Errorf("read CSV: %w", err)
	}
	if len(content) > maxFile {
		return "", fmt.Errorf("file is larger than %d MiB: split it", maxFile>>20)
	}
	text := string(content)
	for line, at := 1, 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			return "", fmt.Errorf("line %d is not UTF-8: save the file as \"CSV UTF-8\"", line)
		case r == '\n':
			line++
		}
		at += size
	}
	return strings.TrimPrefix(text, byteOrderMark), nil
}

// scanner splits a text into records. Lines end with CRLF, LF or CR; empty ones are left out.
type scanner struct {
	text string
	line int
}

func (s *scanner) next() (rec record, more bool, err error) {
	for s.text != "" && s.lineEnd() {
	}
	if s.text == "" {
		return record{}, false, nil
	}
	rec.line = s.line
	for {
		cell, err := s.cell()
		if err != nil {
			s.skipLine()
			return rec, true, err
		}
		rec.cells = append(rec.cells, cell)
		switch {
		case s.text == "" || s.lineEnd():
			return rec, true, nil
		default: // a comma
			s.text = s.text[1:]
		}
	}
}

// lineEnd goes past the end of a line, where one is next.
func (s *scanner) lineEnd() bool {
	switch {
	case strings.HasPrefix(s.text, "\r\n"):
		s.text = s.text[2:]
	case s.text[0] == '\n' || s.text[0] == '\r':
		s.text = s.text[1:]
	default:
		return false
	}
	s.line++
	return true
}

func (s *scanner) cell() (string, error) {
	if strings.HasPrefix(s.text, `"`) {
		return s.quotedCell()
	}
	end := strings.IndexAny(s.text, ",\r\n\"")
	if end < 0 {
		end = len(s.text)
	} else if s.text[end] == '"' {
		return "", fmt.Errorf("a quote inside a cell: put the cell in quotes and double those inside")
	}
	cell := s.text[:end]
	s.text = s.text[end:]
	return cell, nil
}

func (s *scanner) quotedCell() (string, error) {
	var cell strings.Builder
	for rest := s.text[1:]; ; {
		end := strings.IndexByte(rest, '"')
		if end < 0 {
			s.text = ""
			return "", fmt.Errorf("a quote is not closed")
		}
		cell.WriteString(rest[:end])
		rest = rest[end+1:]
		if strings.HasPrefix(rest, `"`) {
			cell.WriteByte('"')
			rest = rest[1:]
			continue
		}
		s.text = rest
		s.line += lineBreaks(cell.String())
		if rest != "" && !strings.ContainsRune(",\r\n", rune(rest[0])) {
			return "", fmt.Errorf("text behind a quoted cell: double the quotes that belong to it")
		}
		return cell.String(), nil
	}
}

func lineBreaks(text string) int {
	return strings.Count(text, "\n") + strings.Count(text, "\r") - strings.Count(text, "\r\n")
}

func (s *scanner) skipLine() {
	if end := strings.IndexAny(s.text, "\r\n"); end >= 0 {
		s.text = s.text[end:]
		s.lineEnd()
		return
	}
	s.text = ""
}
