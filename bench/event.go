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
	mutex    sync.Mutex
	random   *rand.Rand
	cabinets int64           // events come from the cabinets 1 to it
	seq      map[int64]int64 // the last of each cabinet, less past
	past     int64           // the last of each before the first event
	made     uint64
}

func newStream(seed uint64, cabinets int, before past) *stream {
	random := rand.New(rand.NewPCG(1, seed)) //nolint:gosec // no secret
	return &stream{random: random, cabinets: int64(cabinets), seq: map[int64]int64{}, past: int64(before.perEach)}
}

// next is a sale of three products at a cabinet, which its own count saw.
func (s *stream) next() *cabinet.Event {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	e := &cabinet.Event{
		CloseEventID: s.id(now), DeviceID: 1 + s.random.Int64N(s.cabinets), Kind: cabinet.KindSale, UserID: 1 + s.random.Int64N(users),
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
