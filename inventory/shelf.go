package inventory

import (
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Planogram says which product each lane of a cabinet holds.
type Planogram map[int]int64

// ReadPlanograms reads those of some cabinets; a cabinet without one is missing.
func ReadPlanograms(tx *gorm.DB, devices []int64) (map[int64]Planogram, error) {
	planograms := map[int64]Planogram{}
	if len(devices) == 0 {
		return planograms, nil
	}
	var rows []struct {
		DeviceID  int64
		Lane      int
		ProductID int64
	}
	if err := tx.Raw("SELECT device_id, lane, product_id FROM lanes WHERE device_id IN ?", devices).Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("read planograms: %w", err)
	}
	for _, row := range rows {
		if planograms[row.DeviceID] == nil {
			planograms[row.DeviceID] = Planogram{}
		}
		planograms[row.DeviceID][row.Lane] = row.ProductID
	}
	return planograms, nil
}

// Article is what evidence needs to know of a product.
type Article struct {
	ProductID            int64
	GTIN14               string // "" for none
	UnitWeightGrams      int64  // 0 for none
	WeightToleranceGrams int64  // of one unit; 0 for the default

	Prices []Price `gorm:"-"` // its history from a moment on, in the order of time
}

// ReadArticles reads the products that exist among ids or bear one of gtins, each a GTIN-14, with their prices since a moment. One
// may be there twice.
func ReadArticles(tx *gorm.DB, ids []int64, gtins []string, since time.Time) ([]Article, error) {
	const columns = `SELECT product_id, COALESCE(gtin14, '') AS gtin14, COALESCE(unit_weight_g, 0) AS unit_weight_grams,
		COALESCE(weight_tolerance_g, 0) AS weight_tolerance_grams FROM products WHERE `
	var articles []Article
	if len(ids) > 0 {
		if err := tx.Raw(columns+"product_id IN ?", ids).Scan(&articles).Error; err != nil {
			return nil, fmt.Errorf("read products: %w", err)
		}
	}
	if len(gtins) > 0 {
		var named []Article
		if err := tx.Raw(columns+"gtin14 IN ?", gtins).Scan(&named).Error; err != nil {
			return nil, fmt.Errorf("read products by GTIN: %w", err)
		}
		articles = append(articles, named...)
	}
	return articles, readHistories(tx, articles, since)
}

func readHistories(tx *gorm.DB, articles []Article, since time.Time) error {
	ids := make([]int64, len(articles))
	for i, a := range articles {
		ids[i] = a.ProductID
	}
	prices, err := ReadPrices(tx, distinct(ids), since)
	if err != nil {
		return err
	}
	for i := range articles {
		articles[i].Prices = prices[articles[i].ProductID]
	}
	return nil
}
