package simulator

import (
	"slices"
	"time"
)

// message is one thing that a cabinet will publish on its door-closed topic.
type message struct {
	id      string // closeEventId; "" for what waits for no receipt: copies and garbage
	payload []byte
	changed bool      // another content under an id that has its outcome: waits for the conflict
	fault   Fault     // counted when the message is sent for the first time
	dueAt   time.Time // when to send it next
	tries   int
	before  int      // of them, those that no longer lengthen the wait
	then    *message // queued once this one's receipt is there
	// thenAfter is how long after the receipt then is due.
	thenAfter time.Duration
}

// outbox holds what the cabinet has to send. An event stays until its receipt comes (R2).
type outbox struct {
	first, last time.Duration
	messages    []*message // in order of putting them in
	hurried     bool
	resends     int64
}

// resendWait is the wait after the try of that number, from 1 on: first, doubling to last, ±20 % (R2). luck is 0 to 1.
func resendWait(first, last time.Duration, tries int, luck float64) time.Duration {
	wait := first
	for i := 1; i < tries && wait < last; i++ {
		wait *= 2
	}
	return time.Duration(float64(min(wait, last)) * (0.8 + 0.4*luck))
}

func (o *outbox) put(list ...*message) { o.messages = append(o.messages, list...) }

// due takes what is to be sent now, oldest first, and says when the next one is due; zero for never.
func (o *outbox) due(now time.Time, luck func() float64) (send []*message, next time.Time) {
	keep := o.messages[:0]
	for _, m := range o.messages {
		if !m.dueAt.After(now) {
			send = append(send, m)
			if m.id == "" {
				continue
			}
			o.sent(m, now, luck())
		}
		keep = append(keep, m)
		if next.IsZero() || m.dueAt.Before(next) {
			next = m.dueAt
		}
	}
	clear(o.messages[len(keep):])
	o.messages = keep
	return send, next
}

func (o *outbox) sent(m *message, now time.Time, luck float64) {
	m.tries++
	if m.tries > 1 {
		o.resends++
	}
	m.dueAt = now.Add(resendWait(o.first, o.last, m.tries-m.before, luck))
}

// answered forgets the event, or with conflict the other content under its id.
func (o *outbox) answered(id string, conflict bool, now time.Time) {
	i := slices.IndexFunc(o.messages, func(m *message) bool { return m.id == id && m.changed == conflict })
	if i < 0 {
		return
	}
	m := o.messages[i]
	o.messages = slices.Delete(o.messages, i, i+1)
	if m.then != nil {
		m.then.dueAt = now
		if !o.hurried {
			m.then.dueAt = now.Add(m.thenAfter)
		}
		o.put(m.then)
	}
}

// hurriedResend is the longest first wait once the fleet is closing: the drain has room for two resends of each event.
const hurriedResend = 2 * time.Second

// hurry sends now what was held back. What was sent already is sent again within the first wait, and from there on the
// waits double as ever: to repeat everything quickly would bury a Doortab that is merely slow.
func (o *outbox) hurry(now time.Time, luck func() float64) {
	o.hurried = true
	o.first = min(o.first, hurriedResend)
	for _, m := range o.messages {
		soon := now
		if m.tries > 0 {
			m.before = m.tries - 1
			soon = now.Add(resendWait(o.first, o.last, 1, luck()))
		}
		if m.dueAt.After(soon) {
			m.dueAt = soon
		}
	}
}

// waiting counts what still needs a receipt.
func (o *outbox) waiting() (n int) {
	for _, m := range o.messages {
		if m.id != "" {
			n++
		}
	}
	return n
}

func (o *outbox) unanswered() (ids []string) {
	for _, m := range o.messages {
		if m.id != "" {
			ids = append(ids, m.id)
		}
	}
	return ids
}
