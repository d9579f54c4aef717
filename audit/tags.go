package audit

import (
	"context"
	"database/sql"
	"fmt"
)

const (
	tagInCabinet = "in_cabinet"
	tagSold      = "sold"
	tagLost      = "lost"
)

const readTags = `
SELECT t.epc, t.state, t.device_id, t.close_event_id, t.order_id, COALESCE(o.device_id, oa.device_id),
       COALESCE(o.close_event_id, oa.close_event_id)
  FROM epcs t FORCE INDEX (PRIMARY)
  LEFT JOIN orders o ON o.order_id = t.order_id
  LEFT JOIN orders_archive oa ON oa.order_id = t.order_id
 ORDER BY t.epc`

// tags checks that exactly the sold ones name an order, which is of the cabinet and the event that the tag was last in.
func (a *auditor) tags(ctx context.Context) error {
	var epc, state, event string
	var device int64
	var order, orderDevice sql.Null[int64]
	var orderEvent sql.Null[string]
	return a.each(ctx, readTags, []any{&epc, &state, &device, &event, &order, &orderDevice, &orderEvent}, func() {
		a.i4.Rows++
		key := fmt.Sprintf("epcs epc=%s", epc)
		switch sold := state == tagSold; {
		case !sold && state != tagInCabinet && state != tagLost:
			a.i4.violated("%s: state %q is none that is ever written", key, state)
		case !sold && order.Valid:
			a.i4.violated("%s: %s, but names order=%d", key, state, order.V)
		case sold && !order.Valid:
			a.i4.violated("%s: sold in no order", key)
		case sold && !orderDevice.Valid:
			a.i4.violated("%s: no order=%d", key, order.V)
		case sold && (orderDevice.V != device || orderEvent.V != event):
			a.i4.violated("%s: sold at device=%d event=%s, but order=%d is of device=%d event=%s",
				key, device, event, order.V, orderDevice.V, orderEvent.V)
		}
	})
}
