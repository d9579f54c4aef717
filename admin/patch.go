package admin

import (
	"encoding/json"
	"errors"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// changed is a member of a PATCH that may be left out, but not null.
type changed[T any] struct{ value *T }

// UnmarshalJSON refuses null, which huma takes for left out.
func (c *changed[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return errors.New("may not be null")
	}
	return json.Unmarshal(text, &c.value)
}

// Schema is that of the value.
func (c changed[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

// settable is a member of a PATCH that may be left out, null or a value.
type settable[T any] struct {
	set   bool
	value *T // nil: null
}

// UnmarshalJSON notes that the member was there.
func (o *settable[T]) UnmarshalJSON(text []byte) error {
	o.set = true
	return json.Unmarshal(text, &o.value)
}

// Schema is that of the value, or null.
func (o settable[T]) Schema(r huma.Registry) *huma.Schema {
	schema := *r.Schema(reflect.TypeFor[T](), true, "")
	schema.Nullable = true
	return &schema
}

func setIf[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
