package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// TokenView is a token without its secret.
type TokenView struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      Role      `json:"role"`
	CreatedAt time.Time `json:"createdAt"`
}

func viewToken(t Token) TokenView { return TokenView{t.ID, t.Name, t.Role, t.CreatedAt} }

type createToken struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"200"`
		Role Role   `json:"role" enum:"viewer,restocker,operator,admin,app"`
	}
}

type createTokenOutput struct {
	CacheControl string `header:"Cache-Control"`
	Body         struct {
		TokenView
		Token string `json:"token" doc:"Shown this once."`
	}
}

type tokenPath struct {
	ID string `path:"id"`
}

type tokenPlace struct {
	ID string `json:"id"`
}

func (p tokenPlace) sound() bool { return uuid.Validate(p.ID) == nil }

func (s *Server) tokenRoutes() {
	route(s, Admin, huma.Operation{
		OperationID: "listTokens", Method: http.MethodGet, Path: "/v1/tokens", Summary: "List tokens, the newest first",
	}, s.listTokens)
	route(s, Admin, huma.Operation{
		OperationID: "createToken", Method: http.MethodPost, Path: "/v1/tokens", Summary: "Make a token",
		DefaultStatus: http.StatusCreated,
	}, s.createToken)
	route(s, Admin, huma.Operation{
		OperationID: "deleteToken", Method: http.MethodDelete, Path: "/v1/tokens/{id}",
		Summary: "End a token; it stops within seconds", Errors: []int{http.StatusNotFound},
	}, s.deleteToken)
}

const shownColumns = "token_id AS id, name, role, created_at"

// listTokens walks the primary key: a token's id starts with its time (UUID version 7, RFC 9562).
func (s *Server) listTokens(ctx context.Context, in *PageInput) (*pageOutput[TokenView], error) {
	return readPage(*in, func(after *tokenPlace, limit int) ([]Token, error) {
		before := "~"
		if after != nil {
			before = after.ID
		}
		var list []Token
		err := s.db.Read(ctx).Raw("SELECT "+shownColumns+" FROM api_tokens WHERE token_id < ? ORDER BY token_id DESC LIMIT ?", before, limit).
			Scan(&list).Error
		if err != nil {
			return nil, fmt.Errorf("list tokens: %w", err)
		}
		return list, nil
	}, func(t Token) tokenPlace { return tokenPlace{t.ID} }, viewToken)
}

func (s *Server) createToken(ctx context.Context, in *createToken) (*createTokenOutput, error) {
	t, err := CreateToken(ctx, s.db, in.Body.Name, in.Body.Role)
	out := &createTokenOutput{CacheControl: "no-store"}
	out.Body.TokenView, out.Body.Token = viewToken(t), t.Secret
	return out, err
}

func (s *Server) deleteToken(ctx context.Context, in *tokenPath) (*struct{}, error) {
	if uuid.Validate(in.ID) != nil {
		return nil, errTokenGone
	}
	err := s.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		before, err := oneToken(tx, in.ID)
		if errors.Is(err, errTokenGone) && attempt > 1 { // it may be our own doing
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.Exec("DELETE FROM api_tokens WHERE token_id = ?", in.ID).Error; err != nil {
			return err
		}
		return auditlog.Write(tx, auditlog.Entry{
			Action: "token.delete", Target: "token " + in.ID, Before: viewToken(before),
		}, database.Now())
	})
	s.tokens.forget(in.ID)
	if err != nil {
		return nil, fmt.Errorf("delete token: %w", err)
	}
	return nil, nil
}

// oneToken reads a token that is about to be deleted.
func oneToken(tx *gorm.DB, id string) (Token, error) {
	var list []Token
	err := tx.Raw("SELECT "+shownColumns+" FROM api_tokens WHERE token_id = ? FOR UPDATE", id).Scan(&list).Error
	if err != nil {
		return Token{}, fmt.Errorf("read token: %w", err)
	}
	if len(list) == 0 {
		return Token{}, errTokenGone
	}
	return list[0], nil
}
