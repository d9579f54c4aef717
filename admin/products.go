package admin

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"doortab/inventory"
)

type productView struct {
	ProductID            int64   `json:"productId"`
	SKU                  string  `json:"sku"`
	Name                 string  `json:"name"`
	GTIN                 *string `json:"gtin"`
	PriceMinor           int64   `json:"priceMinor"`
	UnitWeightGrams      *int64  `json:"unitWeightGrams"`
	WeightToleranceGrams *int64  `json:"weightToleranceGrams"`
}

func viewProduct(p inventory.Product) productView {
	v := productView{
		ProductID: p.ProductID, SKU: p.SKU, Name: p.Name, PriceMinor: p.PriceMinor,
		UnitWeightGrams: p.UnitWeightGrams, WeightToleranceGrams: p.WeightToleranceGrams,
	}
	if p.GTIN != "" {
		v.GTIN = &p.GTIN
	}
	return v
}

type productOutput struct{ Body productView }

// ProductPath names a product.
type ProductPath struct {
	ProductID int64 `path:"productId" minimum:"1" maximum:"9007199254740991"`
}

type createProduct struct {
	Body struct {
		ProductID            int64   `json:"productId,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Chosen; else assigned."`
		SKU                  string  `json:"sku" minLength:"1" maxLength:"64"`
		Name                 string  `json:"name" minLength:"1" maxLength:"200"`
		GTIN                 *string `json:"gtin,omitempty" nullable:"true" minLength:"8" maxLength:"14" doc:"8, 12, 13 or 14 digits."`
		PriceMinor           int64   `json:"priceMinor" minimum:"0" maximum:"1000000000000"`
		UnitWeightGrams      *int64  `json:"unitWeightGrams,omitempty" nullable:"true" minimum:"1" maximum:"1000000"`
		WeightToleranceGrams *int64  `json:"weightToleranceGrams,omitempty" nullable:"true" minimum:"0" maximum:"1000000"`
	}
}

type patchProduct struct {
	ProductPath
	Body struct {
		SKU                  changed[string]  `json:"sku,omitzero" minLength:"1" maxLength:"64"`
		Name                 changed[string]  `json:"name,omitzero" minLength:"1" maxLength:"200"`
		GTIN                 settable[string] `json:"gtin,omitzero" minLength:"8" maxLength:"14"`
		PriceMinor           changed[int64]   `json:"priceMinor,omitzero" minimum:"0" maximum:"1000000000000"`
		UnitWeightGrams      settable[int64]  `json:"unitWeightGrams,omitzero" minimum:"1" maximum:"1000000"`
		WeightToleranceGrams settable[int64]  `json:"weightToleranceGrams,omitzero" minimum:"0" maximum:"1000000"`
	}
}

func (s *Server) productRoutes() {
	route(s, Viewer, huma.Operation{
		OperationID: "listProducts", Method: http.MethodGet, Path: "/v1/products", Summary: "List products",
	}, s.listProducts)
	route(s, Operator, huma.Operation{
		OperationID: "createProduct", Method: http.MethodPost, Path: "/v1/products", Summary: "Add a product",
		DefaultStatus: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, s.createProduct)
	route(s, Viewer, huma.Operation{
		OperationID: "getProduct", Method: http.MethodGet, Path: "/v1/products/{productId}", Summary: "Read a product",
		Errors: []int{http.StatusNotFound},
	}, s.getProduct)
	route(s, Operator, huma.Operation{
		OperationID: "patchProduct", Method: http.MethodPatch, Path: "/v1/products/{productId}",
		Summary: "Change a product; null takes an optional value away", Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.patchProduct)
}

func (s *Server) listProducts(ctx context.Context, in *PageInput) (*pageOutput[productView], error) {
	return readPage(*in, func(after *idPlace, limit int) ([]inventory.Product, error) {
		return s.products.List(ctx, after.from(), limit)
	}, func(p inventory.Product) idPlace { return idPlace{p.ProductID} }, viewProduct)
}

func (s *Server) createProduct(ctx context.Context, in *createProduct) (*productOutput, error) {
	b := in.Body
	p := inventory.Product{
		ProductID: b.ProductID, SKU: b.SKU, Name: b.Name, PriceMinor: b.PriceMinor,
		UnitWeightGrams: b.UnitWeightGrams, WeightToleranceGrams: b.WeightToleranceGrams,
	}
	if b.GTIN != nil {
		p.GTIN = *b.GTIN
	}
	p, err := s.products.Create(ctx, p)
	return &productOutput{viewProduct(p)}, err
}

func (s *Server) getProduct(ctx context.Context, in *ProductPath) (*productOutput, error) {
	p, err := s.products.Product(ctx, in.ProductID)
	return &productOutput{viewProduct(p)}, err
}

func (s *Server) patchProduct(ctx context.Context, in *patchProduct) (*productOutput, error) {
	b := in.Body
	p, err := s.products.Patch(ctx, in.ProductID, func(p *inventory.Product) {
		setIf(&p.SKU, b.SKU.value)
		setIf(&p.Name, b.Name.value)
		setIf(&p.PriceMinor, b.PriceMinor.value)
		if b.GTIN.set {
			p.GTIN = ""
			setIf(&p.GTIN, b.GTIN.value)
		}
		if b.UnitWeightGrams.set {
			p.UnitWeightGrams = b.UnitWeightGrams.value
		}
		if b.WeightToleranceGrams.set {
			p.WeightToleranceGrams = b.WeightToleranceGrams.value
		}
	})
	return &productOutput{viewProduct(p)}, err
}
