package bench

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"doortab/bench/usual"
	"doortab/cabinet"
)

const (
	products   = 40 // of the catalogue, all of them in each cabinet
	perEvent   = 3  // different products that an event takes one unit of
	startStock = 1_000_000
	users      = 977
)

// stream makes the events of one side of a part: two streams of one seed and one number of cabinets make the same events, but
// for their times and ids. It is safe for concurrent use.
type stream struct {
	mutex  sync.Mutex
	random *rand.Rand
	active int64           // cabinets that events come from
	stride int64           // from one of them to the next
	seq    map[int64]int64 // the last of each cabinet, less past
	past   int64           // the last of each before the first event
	made   uint64
}

// newStream lets events come from active cabinets, spread over those that have a past. The stride is odd, so that no way to share
// cabinets out by their numbers takes all of them for one.
func newStream(seed uint64, active int, before past) *stream {
	return &stream{
		random: rand.New(rand.NewPCG(1, seed)), //nolint:gosec // no secret
		active: int64(active), stride: max(1, int64(before.cabinets/active-1)|1), seq: map[int64]int64{}, past: int64(before.perEach),
	}
}

// everywhere lets events come from each of that many cabinets from now on.
func (s *stream) everywhere(cabinets int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.active, s.stride = int64(cabinets), 1
}

// cabinet is the device id of the active cabinet number n, from 0.
func (s *stream) cabinet(n int64) int64 { return 1 + n*s.stride }

// next is a sale of three products at a cabinet, which its own count saw.
func (s *stream) next() *cabinet.Event {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	e := &cabinet.Event{
		CloseEventID: s.id(now), DeviceID: s.cabinet(s.random.Int64N(s.active)), Kind: cabinet.KindSale, UserID: 1 + s.random.Int64N(users),
		HasSeq: true, ClosedAt: now, HasItems: true,
	}
	s.seq[e.DeviceID]++
	e.Seq = s.past + s.seq[e.DeviceID]
	for len(e.Items) < perEvent {
		product := 1 + s.random.Int64N(products)
		at, taken := slices.BinarySearchFunc(e.Items, product, byProduct)
		if !taken {
			e.Items = slices.Insert(e.Items, at, cabinet.Item{ProductID: product, Quantity: 1, Confidence: 1})
		}
	}
	return e
}

func byProduct(item cabinet.Item, product int64) int { return int(item.ProductID - product) }

// id is a UUID of version 7, as cabinets send: in order of time, and different for each event of the stream.
func (s *stream) id(now time.Time) string {
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(now.UnixMilli())<<16|s.random.Uint64N(1<<12))
	s.made++
	binary.BigEndian.PutUint64(id[8:], s.made)
	id[6] |= 0x70
	id[8] |= 0x80
	return id.String()
}

// usualEvent is the same event as the usual design takes it.
func usualEvent(e *cabinet.Event) usual.Event {
	u := usual.Event{DeviceID: e.DeviceID, CloseEventID: e.CloseEventID, UserID: e.UserID, Lines: make([]usual.Line, len(e.Items))}
	for i, item := range e.Items {
		u.Lines[i] = usual.Line{ProductID: item.ProductID, Quantity: item.Quantity}
	}
	return u
}
