package bench

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database"
	"doortab/inventory"
)

const (
	companyPrefix    = 8719139
	unitsInLane      = 12
	tagsStaying      = 9       // that the antennas of a cabinet see before and after each door
	firstTakenSerial = 1 << 24 // above those of the tags that stay, which are device ids
	tagsAtOnce       = 2000
)

// tag is one that a cabinet's books have.
type tag struct {
	epc                 string
	productID, deviceID int64
}

// gtin14 is the GTIN of a product: a company prefix of 7 digits, the product's number and the check digit that GS1's General
// Specifications put behind them.
func gtin14(product int) string {
	digits := fmt.Sprintf("0%d%05d", companyPrefix, product)
	sum := 0
	for i, d := range digits {
		sum += int(d-'0') * (3 - 2*(i%2))
	}
	return digits + fmt.Sprint((10-sum%10)%10)
}

// sgtin96 is the EPC of a product's tag, of partition 5: 24 bits of company prefix, 20 of item reference (GS1 EPC Tag Data
// Standard, section "SGTIN-96").
func sgtin96(product int, serial int64) string {
	const header, filter, partition = 0x30, 1, 5
	value := big.NewInt(header<<6 | filter<<3 | partition)
	for _, field := range []struct {
		bits  uint
		value int64
	}{{24, companyPrefix}, {20, int64(product)}, {38, serial}} {
		value.Lsh(value, field.bits).Or(value, big.NewInt(field.value))
	}
	return strings.ToUpper(hex.EncodeToString(value.Bytes()))
}

// scales are what the lanes of a cabinet read around a sale.
func scales(sold []cabinet.Item) []cabinet.Weight {
	weights := make([]cabinet.Weight, products)
	for i := range weights {
		weights[i] = cabinet.Weight{Lane: i + 1, BeforeGrams: unitsInLane * unitGrams, AfterGrams: unitsInLane * unitGrams}
	}
	for _, item := range sold {
		weights[item.ProductID-1].AfterGrams -= item.Quantity * unitGrams
	}
	return weights
}

// stayingTags puts into the books of each cabinet the tags that nobody takes.
func (d *duel) stayingTags(ctx context.Context) (byCabinet map[int64][]string, err error) {
	byCabinet = map[int64][]string{}
	var all []tag
	for n := range d.events.active {
		device := d.events.cabinet(n)
		for product := range tagsStaying {
			t := tag{sgtin96(product+1, device), int64(product + 1), device}
			byCabinet[t.deviceID] = append(byCabinet[t.deviceID], t.epc)
			all = append(all, t)
		}
	}
	return byCabinet, insertTags(ctx, d.product.db, all)
}

func insertTags(ctx context.Context, db *database.DB, tags []tag) error {
	now := time.Now()
	for some := range slices.Chunk(tags, tagsAtOnce) {
		rows := make([][]any, len(some))
		for i, t := range some {
			rows[i] = []any{t.epc, t.productID, inventory.TagInCabinet, t.deviceID, restocked, 1, now}
		}
		err := db.InTx(ctx, func(tx *gorm.DB) error {
			return database.Insert(tx, "epcs",
				[]string{"epc", "product_id", "state", "device_id", "close_event_id", "version", "updated_at"}, rows, "")
		})
		if err != nil {
			return fmt.Errorf("fill the tags: %w", err)
		}
	}
	return nil
}
