package settlement

import "strconv"

// FormatID writes an id as REST and receipts show it.
func FormatID(id int64) string { return strconv.FormatInt(id, 10) }

// ParseID reads what [FormatID] wrote.
func ParseID(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil && id > 0 && FormatID(id) == text
}
