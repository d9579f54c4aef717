package audit

import "context"

const readDoors = `
SELECT d.session_id, d.device_id, d.state = 'closed', COALESCE(d.settled_event_id, ''), s.device_id IS NOT NULL
  FROM door_sessions d FORCE INDEX (PRIMARY)
  LEFT JOIN settlements s ON s.device_id = d.device_id AND s.close_event_id = d.settled_event_id AND s.session_id = d.session_id
 ORDER BY d.session_id`

// doors checks that exactly the closed door sessions name the settlement that closed them.
func (a *auditor) doors(ctx context.Context) error {
	var session, event string
	var device int64
	var closed, settled bool
	return a.each(ctx, readDoors, []any{&session, &device, &closed, &event, &settled}, func() {
		a.i4.Rows++
		switch {
		case closed && !settled:
			a.i4.Lost++
			a.i4.violated("door_sessions session=%s: closed, but no settlement of device=%d event=%s is of it", session, device, event)
		case !closed && event != "":
			a.i4.violated("door_sessions session=%s: not closed, but names event=%s", session, event)
		}
	})
}
