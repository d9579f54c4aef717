package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"gorm.io/gorm"
)

type temperature struct {
	DeviceID int64
	Celsius  float64
	At       time.Time
}

func (t temperature) from() (int64, time.Time) { return t.DeviceID, t.At }

// OfferTemperature notes how warm a cabinet said it is, in °C within ±9,999, at a time. It is like [StatusBoard.Offer].
func (b *StatusBoard) OfferTemperature(deviceID int64, celsius float64, at time.Time) {
	b.temperatures.offer(temperature{deviceID, celsius, at})
}

const updateTemperatures = `UPDATE JSON_TABLE(CONVERT(? USING utf8mb4), '$[*]' COLUMNS (
    device_id BIGINT PATH '$.d', celsius DECIMAL(6,2) PATH '$.c')) n
  STRAIGHT_JOIN cabinets c ON c.device_id = n.device_id
  SET c.temperature_c = n.celsius WHERE NOT c.temperature_c <=> n.celsius`

func (b *StatusBoard) writeTemperatures(ctx context.Context, batch []temperature) error {
	type row struct {
		DeviceID int64  `json:"d"`
		Celsius  string `json:"c"`
	}
	list := make([]row, len(batch))
	for i, t := range batch {
		list[i] = row{t.DeviceID, strconv.FormatFloat(t.Celsius, 'f', 2, 64)}
	}
	rows, err := json.Marshal(list)
	if err != nil {
		return fmt.Errorf("temperatures as JSON: %w", err)
	}
	err = b.db.InTx(ctx, func(tx *gorm.DB) error { return tx.Exec(updateTemperatures, string(rows)).Error })
	if err != nil {
		return fmt.Errorf("update temperatures of cabinets: %w", err)
	}
	return nil
}
