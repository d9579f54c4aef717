package simulator

import (
	"cmp"
	"slices"
)

// quantity is a number of units of one product.
type quantity struct {
	ProductID int64 `json:"productId"`
	Quantity  int64 `json:"quantity"`
}

// byProduct adds up quantities and sorts them; nothing is left out but sums of 0.
func byProduct(list []quantity) []quantity {
	return fromMap(toMap(list))
}

func fromMap(sums map[int64]int64) []quantity {
	out := make([]quantity, 0, len(sums))
	for product, n := range sums {
		if n != 0 {
			out = append(out, quantity{product, n})
		}
	}
	slices.SortFunc(out, func(a, b quantity) int { return cmp.Compare(a.ProductID, b.ProductID) })
	return out
}

func toMap(list []quantity) map[int64]int64 {
	sums := make(map[int64]int64, len(list))
	for _, q := range list {
		sums[q.ProductID] += q.Quantity
	}
	return sums
}
