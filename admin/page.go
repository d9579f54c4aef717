package admin

import (
	"encoding/base64"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
)

// PageInput is what every list takes. Like every embedded type here it is exported because huma skips others.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"The most items to answer."`
	Cursor string `query:"cursor" maxLength:"512" doc:"The nextCursor of the page before."`
}

// Period narrows a list to a time.
type Period struct {
	From time.Time `query:"from" doc:"The first moment that counts: receivedAt of settlements, createdAt of orders."`
	To   time.Time `query:"to" doc:"The first moment that no longer counts."`
}

// Resolve refuses times that the database has no form for.
func (p Period) Resolve(huma.Context) []error {
	var errs []error
	for name, at := range map[string]time.Time{"from": p.From, "to": p.To} {
		if !storable(at) {
			errs = append(errs, &huma.ErrorDetail{Message: "give a time in the years 1 to 9999", Location: "query." + name})
		}
	}
	return errs
}

func storable(at time.Time) bool {
	year := at.UTC().Year()
	return year >= 1 && year <= 9999
}

// place is where a list goes on. A cursor comes from outside: sound tells whether the place can be one of the list's, so that
// the database can be asked for it.
type place interface{ sound() bool }

// page is what every list answers.
type page[T any] struct {
	Items      []T     `json:"items" nullable:"false"`
	NextCursor *string `json:"nextCursor" doc:"Gives the next page; null at the end."`
}

type pageOutput[T any] struct{ Body page[T] }

// readPage reads one page: read takes the place to go on from, nil at the beginning, and at tells where an item is.
func readPage[T, V any, P place](
	in PageInput, read func(after *P, limit int) ([]T, error), at func(T) P, view func(T) V,
) (*pageOutput[V], error) {
	after, err := decodeCursor[P](in.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := read(after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &pageOutput[V]{}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		if out.Body.NextCursor, err = encodeCursor(at(found[in.Limit-1])); err != nil {
			return nil, err
		}
	}
	out.Body.Items = make([]V, len(found))
	for i, item := range found {
		out.Body.Items[i] = view(item)
	}
	return out, nil
}

// idPlace is a place in a list that is ordered by one number.
type idPlace struct {
	ID int64 `json:"id"`
}

func (p idPlace) sound() bool { return p.ID > 0 }

// from is the number to go on from; 0 at the beginning.
func (p *idPlace) from() int64 {
	if p == nil {
		return 0
	}
	return p.ID
}

func encodeCursor(at any) (*string, error) {
	text, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	cursor := base64.RawURLEncoding.EncodeToString(text)
	return &cursor, nil
}

func decodeCursor[P place](cursor string) (*P, error) {
	if cursor == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return nil, errBadCursor
	}
	at := new(P)
	if err := json.Unmarshal(text, at, json.RejectUnknownMembers(true)); err != nil || !(*at).sound() {
		return nil, errBadCursor
	}
	if again, err := encodeCursor(at); err != nil || *again != cursor {
		return nil, errBadCursor
	}
	return at, nil
}
