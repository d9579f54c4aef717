package audit

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"doortab/cabinet"
)

// A payload that is no longer kept is empty.
const readPayloads = `
SELECT device_id, close_event_id, digest, payload
  FROM settlements FORCE INDEX (PRIMARY)
 WHERE payload <> ''
 ORDER BY device_id, close_event_id`

// payloads checks that each payload says what its settlement was keyed and compared by (R3).
func (a *auditor) payloads(ctx context.Context) error {
	var device int64
	var event string
	var digest, payload sql.RawBytes // seen row by row, and large: not copied
	return a.each(ctx, readPayloads, []any{&device, &event, &digest, &payload}, func() {
		key := fmt.Sprintf("settlements device=%d event=%s", device, event)
		said, err := cabinet.Decode(payload)
		if err != nil {
			a.i1.violated("%s: payload can't be read: %v", key, err)
			return
		}
		if said.DeviceID != device || said.CloseEventID != event {
			a.i1.violated("%s: payload is of device=%d event=%s", key, said.DeviceID, said.CloseEventID)
		}
		if now := said.Digest(); !bytes.Equal(now[:], digest) {
			a.i1.violated("%s: digest %.6X, the payload's is %.6X", key, digest, now)
		}
	})
}
