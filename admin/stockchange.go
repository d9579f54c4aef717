package admin

import (
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"doortab/auditlog"
	"doortab/fleet"
)

// stockChange is the operation of a POST below a cabinet that changes its book stock.
func stockChange(id, path, summary string) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: http.MethodPost, Path: "/v1/cabinets/{deviceId}/" + path, Summary: summary,
		DefaultStatus: http.StatusCreated, Errors: []int{http.StatusNotFound},
	}
}

// checkLines refuses a change of a cabinet that isn't registered, and lines that name a product twice.
func checkLines[T any](c change, deviceID int64, lines []T, product func(T) int64) error {
	if err := fleet.Exists(c.tx, deviceID); err != nil {
		return err
	}
	seen := make(map[int64]bool, len(lines))
	for _, line := range lines {
		id := product(line)
		if seen[id] {
			return fmt.Errorf("product %d is there twice: %w", id, errRepeated)
		}
		seen[id] = true
	}
	return nil
}

// logStockChange writes the document behind a change of book stock to the audit log.
func (c change) logStockChange(kind string, deviceID int64, id string, body any) error {
	return auditlog.Write(c.tx, auditlog.Entry{
		Action: kind + ".create", Target: fmt.Sprintf("cabinet %d %s %s", deviceID, kind, id), After: body,
	}, c.now)
}
