package admin

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// jsonFormat reads strictly: a member name twice, invalid UTF-8, an unknown member, another case and trailing data are
// refused. It writes times to the millisecond and empty lists as [].
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error { return json.MarshalWrite(w, v, writing) },
	Unmarshal: func(data []byte, v any) error {
		return plain(json.Unmarshal(data, v, json.RejectUnknownMembers(true)))
	},
}

var writing = json.JoinOptions(
	json.Deterministic(true),
	json.WithMarshalers(json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
		return e.WriteToken(jsontext.String(t.UTC().Format("2006-01-02T15:04:05.000Z07:00")))
	})),
)

func marshal(v any) ([]byte, error) { return json.Marshal(v, writing) }

// plain keeps names of Go types out of what a caller reads.
func plain(err error) error {
	var meaning *json.SemanticError
	var syntax *jsontext.SyntacticError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, json.ErrUnknownName):
		return errors.New("has a member that is not known")
	case errors.As(err, &meaning):
		return fmt.Errorf("has a value of the wrong type or range at %q", string(meaning.JSONPointer))
	case errors.As(err, &syntax):
		return errors.New("is not JSON: " + strings.TrimPrefix(syntax.Error(), "jsontext: "))
	default:
		return errors.New("is not JSON")
	}
}
