package admin

import (
	"bytes"
	"context"
	"net/http"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/negotiation"

	"doortab/inventory"
	"doortab/spreadsheet"
)

type shortageView struct {
	DeviceID  int64  `json:"deviceId"`
	Site      string `json:"site"`
	ProductID int64  `json:"productId"`
	Stock     int64  `json:"stock"`
	ParLevel  int64  `json:"parLevel" doc:"Of all lanes that hold the product."`
	ToBring   int64  `json:"toBring" doc:"Units that fill those lanes: their capacity less the stock."`
}

func viewShortage(s inventory.Shortage) shortageView {
	return shortageView{s.DeviceID, s.Site, s.ProductID, s.Stock, s.ParLevel, s.ToBring}
}

type restockListInput struct {
	PageInput
	Site   string `query:"site" maxLength:"200" doc:"That site alone."`
	Format string `query:"format" enum:"json,csv" doc:"csv gives the whole list at once; so does an Accept header that prefers text/csv."`
	Accept string `header:"Accept" hidden:"true"`
}

func (in *restockListInput) csv() bool {
	if in.Format != "" {
		return in.Format == "csv"
	}
	return negotiation.SelectQValue(in.Accept, []string{"application/json", csvType}) == csvType
}

type restockListOutput struct {
	ContentType string `header:"Content-Type"`
	Vary        string `header:"Vary"`
	Body        any
}

type shortagePlace struct {
	Site      string `json:"site"`
	DeviceID  int64  `json:"deviceId"`
	ProductID int64  `json:"productId"`
}

func (p shortagePlace) sound() bool {
	return p.DeviceID > 0 && p.ProductID > 0 && utf8.RuneCountInString(p.Site) <= 200
}

const (
	csvType  = "text/csv"
	csvChunk = 1000
)

func (s *Server) restockListRoutes() {
	pages := s.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[page[shortageView]](), true, "RestockList")
	route(s, Restocker, huma.Operation{
		OperationID: "listShortages", Method: http.MethodGet, Path: "/v1/restock-list",
		Summary: "What to bring where: stock below par, by site, cabinet and product",
		Responses: map[string]*huma.Response{strconv.Itoa(http.StatusOK): {
			Description: http.StatusText(http.StatusOK),
			Content: map[string]*huma.MediaType{
				"application/json": {Schema: pages}, csvType: {Schema: &huma.Schema{Type: huma.TypeString}},
			},
		}},
	}, s.listShortages)
}

func (s *Server) listShortages(ctx context.Context, in *restockListInput) (*restockListOutput, error) {
	if in.csv() {
		text, err := s.shortagesAsCSV(ctx, in.Site)
		return &restockListOutput{csvType + "; charset=utf-8; header=present", "Accept", text}, err
	}
	list, err := readPage(in.PageInput, func(after *shortagePlace, limit int) ([]inventory.Shortage, error) {
		return inventory.ReadShortages(s.db.Read(ctx), in.Site, (*inventory.ShortageKey)(after), limit)
	}, func(s inventory.Shortage) shortagePlace { return shortagePlace{s.Site, s.DeviceID, s.ProductID} }, viewShortage)
	if err != nil {
		return nil, err
	}
	return &restockListOutput{"application/json", "Accept", list.Body}, nil
}

// shortagesAsCSV gives the whole list: who prints it would not notice that a page ends.
func (s *Server) shortagesAsCSV(ctx context.Context, site string) ([]byte, error) {
	rows := [][]string{{"deviceId", "site", "productId", "stock", "parLevel", "toBring"}}
	var after *inventory.ShortageKey
	for {
		list, err := inventory.ReadShortages(s.db.Read(ctx), site, after, csvChunk)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			rows = append(rows, []string{
				whole(r.DeviceID), spreadsheet.Text(r.Site), whole(r.ProductID), whole(r.Stock), whole(r.ParLevel), whole(r.ToBring),
			})
		}
		if len(list) < csvChunk {
			break
		}
		last := list[len(list)-1]
		after = &inventory.ShortageKey{Site: last.Site, DeviceID: last.DeviceID, ProductID: last.ProductID}
	}
	var text bytes.Buffer
	err := spreadsheet.Write(&text, rows)
	return text.Bytes(), err
}

func whole(n int64) string { return strconv.FormatInt(n, 10) }
