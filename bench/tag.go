package bench

import "fmt"

// gtin14 is the GTIN of a product: a company prefix of 7 digits, the product's number and the check digit that GS1's General
// Specifications put behind them.
func gtin14(product int) string {
	digits := fmt.Sprintf("08719139%05d", product)
	sum := 0
	for i, d := range digits {
		sum += int(d-'0') * (3 - 2*(i%2))
	}
	return digits + fmt.Sprint((10-sum%10)%10)
}
