package admin

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"gorm.io/gorm"

	"doortab/database"
)

const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
)

type keyContext struct{}

// change is what a handler of [changeRoute] works with: one transaction, run again where it must be.
type change struct {
	tx      *gorm.DB
	attempt int       // database.DB.InTxCounted's
	now     time.Time // the same in every attempt
	by      principal

	committed *func(context.Context)
}

// afterCommit has something done once the change is committed by this request, and never by a repeat of it (R7). It must be
// quick, and what it fails at must be harmless.
func (c change) afterCommit(do func(context.Context)) { *c.committed = do }

// onceOutput is the answer to a change, the first or a later time.
type onceOutput struct {
	Status   int
	Replayed string `header:"Idempotency-Replayed"`
	Body     json.RawMessage
}

// changeRoute registers a POST that takes effect once for each Idempotency-Key, which a token has for itself on each
// path. The key is kept in the same transaction as the effect. Repeats get the first answer again; 2xx, 404 and 409 are
// kept for 72 hours at least; archive.Janitor removes them.
func changeRoute[I, R any](s *Server, least Role, op huma.Operation, work func(change, *I) (*R, error)) {
	_, optional := op.Metadata[keyOptional]
	op.Middlewares = append(op.Middlewares, s.readKey(optional))
	one, most := 1, 255
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: keyHeader, In: "header", Required: !optional, Schema: &huma.Schema{Type: "string", MinLength: &one, MaxLength: &most},
		Description: "Names the change. Sent again with the same body, it gets the first answer again.",
	})
	answers := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[R](), true, op.OperationID+"Response")
	op.Responses = map[string]*huma.Response{strconv.Itoa(op.DefaultStatus): {
		Description: http.StatusText(op.DefaultStatus),
		Content:     map[string]*huma.MediaType{"application/json": {Schema: answers}},
	}}
	op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusConflict)
	route(s, least, op, func(ctx context.Context, in *I) (*onceOutput, error) {
		request, err := marshal(in)
		if err != nil {
			return nil, fmt.Errorf("request as JSON: %w", err)
		}
		o := &once{
			db: s.db, by: principalOf(ctx), status: op.DefaultStatus, now: database.Now(),
			scope: scopeOf(ctx), request: sha256.Sum256(request),
			work: func(c change) (any, error) { return work(c, in) },
		}
		if err := o.run(ctx); err != nil {
			return nil, err
		}
		if o.after != nil && !o.answer.replayed {
			o.after(context.WithoutCancel(ctx))
		}
		return o.answer.output()
	})
}

const keyOptional = "keyOptional" // in an operation's metadata

// withoutKeyToo lets an operation be called without a key: it changes neither stock nor money nor a door, and what comes twice
// is seen and taken back.
func withoutKeyToo(op huma.Operation) huma.Operation { return noted(op, keyOptional) }

// readKey refuses a request without a good key before anything else of it is looked at. Without an optional one, a key that
// nobody else has stands in.
func (s *Server) readKey(optional bool) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		request := humaecho.Unwrap(c).Request()
		keys := request.Header.Values(keyHeader)
		if optional && len(keys) == 0 {
			keys = []string{rand.Text()}
		}
		if len(keys) != 1 || !visible(keys[0]) {
			s.fail(errNoKey, humaecho.Unwrap(c))
			return
		}
		scope := sha256.Sum256([]byte(request.Method + " " + request.URL.Path + "\x00" + keys[0]))
		next(huma.WithValue(c, keyContext{}, scope))
	}
}

func scopeOf(ctx context.Context) [32]byte {
	scope, _ := ctx.Value(keyContext{}).([32]byte)
	return scope
}

func visible(key string) bool {
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= 255
}

// once is one request on its way to one effect.
type once struct {
	db      *database.DB
	by      principal
	scope   [32]byte
	request [32]byte
	status  int
	now     time.Time
	work    func(change) (any, error)
	planned []byte // the answer that the last attempt sent to COMMIT
	after   func(context.Context)
	answer  answer
}

type answer struct {
	status   int
	body     []byte
	replayed bool
}

func (o *once) run(ctx context.Context) error {
	err := o.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		found, err := o.find(tx, attempt)
		if found || err != nil {
			return err
		}
		if err := o.insert(tx, 0, nil); err != nil {
			return err
		}
		o.after = nil
		result, err := o.work(change{tx, attempt, o.now, o.by, &o.after})
		if err != nil {
			return err
		}
		body, err := marshal(result)
		if err != nil {
			return fmt.Errorf("answer as JSON: %w", err)
		}
		o.answer, o.planned = answer{status: o.status, body: body}, body
		return o.finish(tx)
	})
	if err == nil || errors.Is(err, errKeyRunning) || errors.Is(err, errKeyReused) {
		return err
	}
	o.after = nil // its transaction has rolled back
	m := modelOf(err)
	if m.Status != http.StatusNotFound && m.Status != http.StatusConflict {
		return err
	}
	return o.keep(ctx, m)
}

// keep keeps a refusal, whose transaction has rolled back. Where another request with the key came between, that one's
// answer is the first.
func (o *once) keep(ctx context.Context, m *huma.ErrorModel) error {
	body, err := marshal(m)
	if err != nil {
		return fmt.Errorf("problem as JSON: %w", err)
	}
	return o.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		found, err := o.find(tx, attempt)
		if found || err != nil {
			return err
		}
		o.answer = answer{status: m.Status, body: body}
		return o.insert(tx, m.Status, body)
	})
}

// find looks for the key's row, and for a first request that is still running by the lock that it holds. In later
// attempts the holder may be our own lost connection, so they wait for it.
func (o *once) find(tx *gorm.DB, attempt int) (found bool, err error) {
	o.answer = answer{}
	lock := " FOR UPDATE NOWAIT"
	if attempt > 1 {
		lock = " FOR UPDATE"
	}
	var rows []struct {
		RequestHash []byte
		Status      int
		Answer      []byte
	}
	err = tx.Raw(`SELECT request_hash, status, answer FROM idempotency_keys
		WHERE token_id = ? AND scope_hash = ?`+lock, o.by.TokenID, o.scope[:]).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return false, running(err)
	}
	row := rows[0]
	if !bytes.Equal(row.RequestHash, o.request[:]) {
		return true, errKeyReused
	}
	ours := o.planned != nil && bytes.Equal(row.Answer, o.planned) // the answer to our own COMMIT was lost
	o.answer = answer{row.Status, row.Answer, !ours}
	return true, nil
}

func (o *once) insert(tx *gorm.DB, status int, body []byte) error {
	if body == nil {
		body = []byte{}
	}
	err := database.Insert(tx, "idempotency_keys",
		[]string{"token_id", "scope_hash", "request_hash", "status", "answer", "created_at"},
		[][]any{{o.by.TokenID, o.scope[:], o.request[:], status, body, o.now}}, "")
	if database.IsDuplicate(err) {
		return fmt.Errorf("idempotency key: %w", database.ErrConflict)
	}
	return running(err)
}

func (o *once) finish(tx *gorm.DB) error {
	result := tx.Exec("UPDATE idempotency_keys SET status = ?, answer = ? WHERE token_id = ? AND scope_hash = ?",
		o.answer.status, o.answer.body, o.by.TokenID, o.scope[:])
	if result.Error == nil && result.RowsAffected != 1 {
		return fmt.Errorf("keep the answer: %d rows of idempotency_keys changed instead of 1", result.RowsAffected)
	}
	return result.Error
}

// running: whoever holds the key's row is the first request.
func running(err error) error {
	if database.IsLockWait(err) {
		return errKeyRunning
	}
	return err
}

func (a answer) output() (*onceOutput, error) {
	replayed := ""
	if a.replayed {
		replayed = "true"
	}
	if a.status < http.StatusBadRequest {
		return &onceOutput{Status: a.status, Replayed: replayed, Body: a.body}, nil
	}
	m := new(huma.ErrorModel)
	if err := json.Unmarshal(a.body, m); err != nil {
		return nil, fmt.Errorf("stored answer: %w", err)
	}
	headers := http.Header{}
	if a.replayed {
		headers.Set(replayedHeader, "true")
	}
	return nil, huma.ErrorWithHeaders(m, headers)
}
