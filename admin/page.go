package admin

import (
	"encoding/base64"

	"github.com/go-json-experiment/json"
)

// PageInput is what every list takes. Like every embedded type here it is exported because huma skips others.
type PageInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"The most items to answer."`
	Cursor string `query:"cursor" maxLength:"512" doc:"The nextCursor of the page before."`
}

// page is what every list answers.
type page[T any] struct {
	Items      []T     `json:"items" nullable:"false"`
	NextCursor *string `json:"nextCursor" doc:"Gives the next page; null at the end."`
}

type pageOutput[T any] struct{ Body page[T] }

// readPage reads one page: read takes the place to go on from, nil at the beginning, and place tells where an item is.
func readPage[T, V, P any](
	in PageInput, read func(after *P, limit int) ([]T, error), place func(T) P, view func(T) V,
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
		if out.Body.NextCursor, err = encodeCursor(place(found[in.Limit-1])); err != nil {
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

// from is the number to go on from; 0 at the beginning.
func (p *idPlace) from() int64 {
	if p == nil {
		return 0
	}
	return p.ID
}

func encodeCursor(place any) (*string, error) {
	text, err := json.Marshal(place)
	if err != nil {
		return nil, err
	}
	cursor := base64.RawURLEncoding.EncodeToString(text)
	return &cursor, nil
}

func decodeCursor[P any](cursor string) (*P, error) {
	if cursor == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return nil, errBadCursor
	}
	place := new(P)
	if err := json.Unmarshal(text, place, json.RejectUnknownMembers(true)); err != nil {
		return nil, errBadCursor
	}
	if again, err := encodeCursor(place); err != nil || *again != cursor {
		return nil, errBadCursor
	}
	return place, nil
}
