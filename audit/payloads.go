package audit

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"doortab/cabinet"
)

// A payload that is archived is empty in its own row. One in the archive belongs to an event.
const (
	readPayloads = `
SELECT device_id, close_event_id, digest, payload
  FROM settlements FORCE INDEX (PRIMARY)
 WHERE payload <> ''
 ORDER BY device_id, close_event_id`
	readArchivedPayloads = `
SELECT p.device_id, p.close_event_id, s.digest, p.payload
  FROM settlement_payloads_archive p FORCE INDEX (PRIMARY)
  LEFT JOIN settlements s ON s.device_id = p.device_id AND s.close_event_id = p.close_event_id
 ORDER BY p.device_id, p.close_event_id`
	readStrayPayloads = `
SELECT p.device_id, p.close_event_id
  FROM conflict_payloads_archive p FORCE INDEX (PRIMARY)
  LEFT JOIN settlement_conflicts c ON c.device_id = p.device_id AND c.close_event_id = p.close_event_id AND c.digest = p.digest
 WHERE c.device_id IS NULL
 ORDER BY p.device_id, p.close_event_id`
)

// payloads checks that each payload of one of the two tables says what its settlement was keyed and compared by (R3).
func (a *auditor) payloads(table, query string) func(context.Context) error {
	return func(ctx context.Context) error {
		var device int64
		var event string
		var digest, payload sql.RawBytes // seen row by row, and large: not copied
		return a.each(ctx, query, []any{&device, &event, &digest, &payload}, func() {
			key := fmt.Sprintf("%s device=%d event=%s", table, device, event)
			if digest == nil {
				a.i4.violated("%s: nothing that it was the payload of", key)
				return
			}
			a.checkPayload(key, device, event, digest, payload)
		})
	}
}

func (a *auditor) checkPayload(key string, device int64, event string, digest, payload []byte) {
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
}

func (a *auditor) strayPayloads(ctx context.Context) error {
	var device int64
	var event string
	return a.each(ctx, readStrayPayloads, []any{&device, &event}, func() {
		a.i4.violated("conflict_payloads_archive device=%d event=%s: nothing that it was the payload of", device, event)
	})
}
