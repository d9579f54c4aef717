package simulator

import (
	"strings"

	"doortab/cabinet"
)

// product is one line of the catalogue as REST has it.
type product struct {
	ProductID            int64  `json:"productId,omitempty"` // assigned by Doortab
	SKU                  string `json:"sku"`
	Name                 string `json:"name"`
	GTIN                 string `json:"gtin"`
	PriceMinor           int64  `json:"priceMinor"`
	UnitWeightGrams      int64  `json:"unitWeightGrams"`
	WeightToleranceGrams int64  `json:"weightToleranceGrams"`
}

// catalogue is the demonstration catalogue. The numbers begin with 200 to 204, which GS1 leaves to a shop's own use, so that
// they are nobody's goods. The tolerances are 8 g and 3 % of the weight: three times what scales that tremble by 2 g and
// units that spread by 1 % let one expect.
func catalogue() []product {
	return []product{
		good("COLA330", "Cola 330 ml", "200000000001", 500, 345),
		good("COLAZERO330", "Cola zero sugar 330 ml", "200000000002", 500, 343),
		good("WATER500", "Still water 500 ml", "200000000003", 200, 520),
		good("SPARKLING500", "Sparkling water 500 ml", "200000000004", 250, 522),
		good("ICETEA500", "Lemon ice tea 500 ml", "200000000005", 450, 535),
		good("OATMILK250", "Oat milk latte 250 ml", "201000000001", 780, 268),
		good("YOGHURT150", "Peach yoghurt 150 g", "201000000002", 620, 163),
		good("SANDWICHHAM", "Ham and cheese sandwich", "202000000001", 1280, 185),
		good("SALADGREEK", "Greek salad 300 g", "202000000002", 1980, 331),
		good("CHOCBAR45", "Hazelnut chocolate bar 45 g", "203000000001", 380, 47),
		good("NUTS60", "Salted nuts 60 g", "203000000002", 560, 64),
		good("BANANA", "Banana", "204000000001", 150, 160),
	}
}

func good(sku, name, twelve string, priceMinor, unitWeightGrams int64) product {
	return product{
		SKU: sku, Name: name, GTIN: gtin13(twelve), PriceMinor: priceMinor,
		UnitWeightGrams: unitWeightGrams, WeightToleranceGrams: 8 + (3*unitWeightGrams+50)/100,
	}
}

// gtin13 adds the check digit to the first twelve: the sum of the digits, every second one thrice, becomes a multiple of ten
// (GS1 General Specifications, 7.9).
func gtin13(twelve string) string {
	sum := 0
	for i, c := range twelve {
		digit := int(c - '0')
		if i%2 == 1 {
			digit *= 3
		}
		sum += digit
	}
	return twelve + string(rune('0'+(10-sum%10)%10))
}

// article is the product as evidence knows it. Where the catalogue has no GTIN or no weight of it, that of the demonstration
// catalogue is on the goods all the same.
func (p product) article(own product) cabinet.Product {
	a := cabinet.Product{ProductID: p.ProductID, GTIN14: "0" + own.GTIN, UnitWeightGrams: own.UnitWeightGrams}
	if p.GTIN != "" {
		a.GTIN14 = strings.Repeat("0", max(14-len(p.GTIN), 0)) + p.GTIN
	}
	if p.UnitWeightGrams > 0 {
		a.UnitWeightGrams = p.UnitWeightGrams
	}
	return a
}
