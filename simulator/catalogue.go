package simulator

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
// they are nobody's goods.
func catalogue() []product {
	return []product{
		{SKU: "COLA330", Name: "Cola 330 ml", GTIN: gtin13("200000000001"), PriceMinor: 500, UnitWeightGrams: 345, WeightToleranceGrams: 6},
		{SKU: "COLAZERO330", Name: "Cola zero sugar 330 ml", GTIN: gtin13("200000000002"), PriceMinor: 500, UnitWeightGrams: 343, WeightToleranceGrams: 6},
		{SKU: "WATER500", Name: "Still water 500 ml", GTIN: gtin13("200000000003"), PriceMinor: 200, UnitWeightGrams: 520, WeightToleranceGrams: 8},
		{SKU: "SPARKLING500", Name: "Sparkling water 500 ml", GTIN: gtin13("200000000004"), PriceMinor: 250, UnitWeightGrams: 522, WeightToleranceGrams: 8},
		{SKU: "ICETEA500", Name: "Lemon ice tea 500 ml", GTIN: gtin13("200000000005"), PriceMinor: 450, UnitWeightGrams: 535, WeightToleranceGrams: 8},
		{SKU: "OATMILK250", Name: "Oat milk latte 250 ml", GTIN: gtin13("201000000001"), PriceMinor: 780, UnitWeightGrams: 268, WeightToleranceGrams: 5},
		{SKU: "YOGHURT150", Name: "Peach yoghurt 150 g", GTIN: gtin13("201000000002"), PriceMinor: 620, UnitWeightGrams: 163, WeightToleranceGrams: 5},
		{SKU: "SANDWICHHAM", Name: "Ham and cheese sandwich", GTIN: gtin13("202000000001"), PriceMinor: 1280, UnitWeightGrams: 185, WeightToleranceGrams: 9},
		{SKU: "SALADGREEK", Name: "Greek salad 300 g", GTIN: gtin13("202000000002"), PriceMinor: 1980, UnitWeightGrams: 331, WeightToleranceGrams: 12},
		{SKU: "CHOCBAR45", Name: "Hazelnut chocolate bar 45 g", GTIN: gtin13("203000000001"), PriceMinor: 380, UnitWeightGrams: 47, WeightToleranceGrams: 5},
		{SKU: "NUTS60", Name: "Salted nuts 60 g", GTIN: gtin13("203000000002"), PriceMinor: 560, UnitWeightGrams: 64, WeightToleranceGrams: 5},
		{SKU: "BANANA", Name: "Banana", GTIN: gtin13("204000000001"), PriceMinor: 150, UnitWeightGrams: 160, WeightToleranceGrams: 40},
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
