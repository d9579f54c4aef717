package admin

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"doortab/cabinet"
	"doortab/claims"
	"doortab/deadletter"
	"doortab/settlement"
)

type deadLetterView struct {
	ID             string    `json:"id"`
	Topic          string    `json:"topic"`
	DeviceID       *int64    `json:"deviceId"`
	CloseEventID   *string   `json:"closeEventId"`
	Payload        string    `json:"payload" doc:"Its first 64 KiB."`
	Encoding       string    `json:"encoding,omitempty" enum:"base64" doc:"Where the payload is not text."`
	Size           int64     `json:"size" doc:"Bytes of the whole."`
	Digest         string    `json:"digest" doc:"SHA-256 of the whole, in hex."`
	Reason         string    `json:"reason"`
	Detail         string    `json:"detail"`
	Copies         int64     `json:"copies" doc:"How often it came."`
	ReceivedAt     time.Time `json:"receivedAt"`
	LastReceivedAt time.Time `json:"lastReceivedAt"`
}

type deadLetterPath struct {
	ID string `path:"id"`
}

type retryOutput struct {
	Body struct {
		Outcome cabinet.Outcome  `json:"outcome,omitempty" doc:"Of a door-close event."`
		Receipt *cabinet.Receipt `json:"receipt,omitempty"`
		Claim   *claimView       `json:"claim,omitempty" doc:"Of a claim that Redis gave and the database had not taken."`
	}
}

func (s *Server) deadLetterRoutes() {
	route(s, Operator, huma.Operation{
		OperationID: "listDeadLetters", Method: http.MethodGet, Path: "/v1/dead-letters",
		Summary: "Messages that belong to no cabinet and event, the newest first",
	}, s.listDeadLetters)
	route(s, Operator, huma.Operation{
		OperationID: "retryDeadLetter", Method: http.MethodPost, Path: "/v1/dead-letters/{id}/retry",
		Summary: "Settle a message as if it came again", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.retryDeadLetter)
	route(s, Operator, huma.Operation{
		OperationID: "deleteDeadLetter", Method: http.MethodDelete, Path: "/v1/dead-letters/{id}",
		Summary: "Remove a message for good", Errors: []int{http.StatusNotFound},
	}, s.deleteDeadLetter)
}

func (s *Server) listDeadLetters(ctx context.Context, in *PageInput) (*pageOutput[deadLetterView], error) {
	return readPage(*in, func(after *idPlace, limit int) ([]deadletter.Kept, error) {
		return deadletter.List(ctx, s.db, after.from(), limit)
	}, func(d deadletter.Kept) idPlace { return idPlace{d.DeadLetterID} }, viewDeadLetter)
}

func (s *Server) retryDeadLetter(ctx context.Context, in *deadLetterPath) (*retryOutput, error) {
	id, err := parseID("dead letter", in.ID)
	if err != nil {
		return nil, err
	}
	out := &retryOutput{}
	if claim, err := s.claims.RetryDeadLetter(ctx, id); err == nil {
		view := viewClaim(claim)
		out.Body.Claim = &view
		return out, nil
	} else if !errors.Is(err, claims.ErrNotClaim) {
		return nil, err
	}
	answer, err := s.settlement.RetryDeadLetter(ctx, id)
	if err != nil {
		return nil, err
	}
	if out.Body.Receipt = answer.Receipt; answer.Receipt != nil {
		out.Body.Outcome = answer.Receipt.Outcome
	}
	return out, nil
}

func (s *Server) deleteDeadLetter(ctx context.Context, in *deadLetterPath) (*struct{}, error) {
	id, err := parseID("dead letter", in.ID)
	if err != nil {
		return nil, err
	}
	return nil, deadletter.Discard(ctx, s.db, id)
}

func viewDeadLetter(d deadletter.Kept) deadLetterView {
	v := deadLetterView{
		ID: settlement.FormatID(d.DeadLetterID), Topic: d.Topic, DeviceID: d.DeviceID, CloseEventID: d.CloseEventID,
		Payload: string(d.Payload), Size: d.Size, Digest: hex.EncodeToString(d.Digest), Reason: d.Reason, Detail: d.Detail,
		Copies: d.Copies, ReceivedAt: d.ReceivedAt, LastReceivedAt: d.LastReceivedAt,
	}
	if !utf8.Valid(d.Payload) {
		v.Payload, v.Encoding = base64.StdEncoding.EncodeToString(d.Payload), "base64"
	}
	return v
}
