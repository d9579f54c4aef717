package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
)

var errBadEPC = errors.New("epc: give hex of 1 to 31 words of 4 digits")

// EPCPath names a tag.
type EPCPath struct {
	EPC string `path:"epc" doc:"Hex in either case."`
}

type putEPC struct {
	EPCPath
	Body struct {
		ProductID int64 `json:"productId" minimum:"1" maximum:"9007199254740991"`
	}
}

type epcOutput struct {
	Body struct {
		EPC       string `json:"epc" doc:"In upper case."`
		ProductID int64  `json:"productId"`
	}
}

func (s *Server) epcRoutes() {
	route(s, Operator, huma.Operation{
		OperationID: "putEpc", Method: http.MethodPut, Path: "/v1/epcs/{epc}",
		Summary: "Say which product a tag is on, where the tag's own GTIN is wrong",
	}, s.putEPC)
	route(s, Operator, huma.Operation{
		OperationID: "deleteEpc", Method: http.MethodDelete, Path: "/v1/epcs/{epc}",
		Summary: "Let a tag's own GTIN count again", Errors: []int{http.StatusNotFound},
	}, s.deleteEPC)
}

func parseEPCs(texts []string) ([]string, error) {
	epcs := make([]string, len(texts))
	for i, text := range texts {
		epc, ok := cabinet.ParseEPC(text)
		if !ok {
			return nil, fmt.Errorf("%.200q: %w", text, errBadEPC)
		}
		epcs[i] = epc
	}
	return epcs, nil
}

func (s *Server) putEPC(ctx context.Context, in *putEPC) (*epcOutput, error) {
	epc, ok := cabinet.ParseEPC(in.EPC)
	if !ok {
		return nil, errBadEPC
	}
	out := &epcOutput{}
	out.Body.EPC, out.Body.ProductID = epc, in.Body.ProductID
	return out, s.db.InTx(ctx, func(tx *gorm.DB) error {
		return inventory.PutOverride(tx, epc, in.Body.ProductID, database.Now())
	})
}

func (s *Server) deleteEPC(ctx context.Context, in *EPCPath) (*struct{}, error) {
	epc, ok := cabinet.ParseEPC(in.EPC)
	if !ok {
		return nil, errBadEPC
	}
	return nil, s.db.InTxCounted(ctx, func(tx *gorm.DB, attempt int) error {
		return inventory.DeleteOverride(tx, attempt, epc, database.Now())
	})
}
