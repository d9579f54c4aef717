package simulator

import (
	"math/rand/v2"
	"time"

	"doortab/cabinet"
)

// The wildest clocks that a cabinet has: a controller without a battery, and one that was set by hand.
var (
	epoch     = time.Date(1970, 1, 1, 0, 0, 21, 0, time.UTC)
	farFuture = time.Date(2099, 12, 31, 23, 59, 59, 0, time.UTC)
)

// visitsOf is how many doors close one after the other so that the fault can befall them.
func visitsOf(fault Fault, rng *rand.Rand) int {
	switch fault {
	case Reordered:
		return 2
	case LateBurst:
		return 3 + rng.IntN(4)
	default:
		return 1
	}
}

// deliver turns reports of one cabinet, in the order in which its doors closed, into the messages that a fault makes of
// them. A clock fault changes the reports.
func deliver(fault Fault, reports []*report, now time.Time, rng *rand.Rand) []*message {
	switch fault {
	case Clock1970:
		reports[0].setClock(epoch)
	case Clock2099:
		reports[0].setClock(farFuture)
	}
	list := make([]*message, len(reports))
	for i, r := range reports {
		list[i] = &message{id: r.CloseEventID, payload: r.payload(), dueAt: now}
	}
	first, last := list[0], list[len(list)-1]
	switch fault {
	case Duplicate:
		return append(list, &message{payload: first.payload, fault: fault, dueAt: now.Add(upTo(rng, time.Second))})
	case Garbage:
		return append(list, &message{payload: garbage(reports[0], rng), fault: fault, dueAt: now})
	case Reordered:
		first.dueAt, first.fault = now.Add(100*time.Millisecond+upTo(rng, time.Second)), fault
	case Delayed:
		first.dueAt, first.fault = now.Add(time.Second+upTo(rng, 2*time.Second)), fault
	case LateBurst:
		holdUntil(list, now.Add(time.Second+upTo(rng, 2*time.Second)))
		last.fault = fault
	case Changed:
		change(first, reports[0], rng)
	default:
		first.fault = fault
	}
	return list
}

func upTo(rng *rand.Rand, d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }

func holdUntil(list []*message, dueAt time.Time) {
	for _, m := range list {
		m.dueAt = dueAt
	}
}

// change sends another content once the event has its outcome: before that, nobody could say which of the two stands.
func change(m *message, r *report, rng *rand.Rand) {
	other, ok := r.changed()
	if !ok {
		return
	}
	m.then = &message{id: m.id, payload: other.payload(), changed: true, fault: Changed}
	m.thenAfter = upTo(rng, time.Second)
}

// garbage makes something out of a report that is no event of this cabinet. Where an id can be read it is one that no
// other event has, so that a settlement under it is noticed.
func garbage(r *report, rng *rand.Rand) []byte {
	other := *r
	other.CloseEventID += garbageSuffix
	switch rng.IntN(5) {
	case 0:
		return []byte("door closed :-)")
	case 1:
		return []byte{0x00, 0xff, 0xfe, 0x80, 0x1b, 0x00, 0x7f, 0xc3}
	case 2:
		text := other.payload()
		return text[:len(text)/2]
	case 3:
		other.DeviceID++
		return other.payload()
	default:
		other.Kind = cabinet.Kind("teapot")
		return other.payload()
	}
}

// garbageSuffix ends the ids that must never have a settlement.
const garbageSuffix = "-garbage"
