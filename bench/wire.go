package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"doortab/bench/load"
	"doortab/cabinet"
	"doortab/services"
)

// brokerLines are the limits of deploy/mosquitto/mosquitto.conf.
var brokerLines = []string{
	"persistence false",
	"max_packet_size 4194304",
	"max_inflight_messages 1000",
	"max_inflight_bytes 33554432",
	"max_queued_messages 1000000",
	"max_queued_bytes 67108864",
	"set_tcp_nodelay true",
}

const (
	senders  = 2 // connections that publish for all cabinets
	receipts = "v1/cabinets/+/receipts"
)

// serving is what `doortab serve` and the usual design's process log once they take events.
var serving = regexp.MustCompile(`msg="Connected to the MQTT broker".* subscriptions=1\b`)

// wire is both designs behind one Mosquitto, each as a process that is started for a turn and ended after it, and the cabinets
// before it.
type wire struct {
	lab     *Lab
	broker  *services.Mosquitto
	product *product
	rival   *rival
	events  *stream // Doortab's
	same    *stream // the usual design's
	loads   int
	resend  time.Duration // of the cabinets; 0 leaves it to the load
}

// newWire fills both databases, Doortab's with a number of cabinets.
func (l *Lab) newWire(ctx context.Context, cabinets int) (*wire, error) {
	broker, err := l.mosquitto(ctx, services.MosquittoOptions{Lines: brokerLines})
	if err != nil {
		return nil, err
	}
	l.say("filling %d cabinets", cabinets)
	before := newPast(cabinets, 0)
	p, err := l.newProduct(ctx, before, true)
	if err != nil {
		return nil, err
	}
	fewer := newPast(l.cabinets, 0)
	r, err := l.newRival(ctx, fewer)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &wire{
		lab: l, broker: broker, product: p, rival: r, events: newStream(1, l.cabinets, before), same: newStream(1, l.cabinets, fewer),
	}, nil
}

// end removes both databases, and keeps an error from before.
func (w *wire) end(ctx context.Context, err error) error {
	if err != nil {
		return errors.Join(err, w.product.close(), w.rival.design.Close())
	}
	return errors.Join(w.product.close(), w.lab.drop(ctx, w.product.dsn), w.rival.end(ctx, w.lab))
}

// worker starts a process of one of the designs.
type worker func(ctx context.Context) (*process, error)

// doortab starts `doortab serve` with its defaults.
func (w *wire) doortab(ctx context.Context) (*process, error) {
	return startProcess(ctx, w.lab.program, []*regexp.Regexp{serving}, "serve", "--database-dsn="+w.product.dsn,
		"--redis-url="+w.lab.servers.Redis.URL(), "--mqtt-url="+w.broker.URL(), "--http-addr=127.0.0.1:0", "--currency="+currency)
}

// usual starts the usual design's process.
func (w *wire) usual(ctx context.Context) (*process, error) {
	return startProcess(ctx, w.lab.program, []*regexp.Regexp{serving}, "bench-usual", "--database-dsn="+w.rival.dsn,
		"--redis-url="+w.lab.servers.Redis.URL(), "--mqtt-url="+w.broker.URL(), fmt.Sprintf("--workers=%d", w.rival.workers))
}

// run starts a number of processes of a design, connects cabinets that make their events by next, and ends it all after use.
func (w *wire) run(
	ctx context.Context, start worker, processes int, next func() (load.Event, error), use func(*load.Load, []*process) error,
) (err error) {
	var crew []*process
	defer func() {
		for _, p := range crew {
			err = errors.Join(err, p.stop())
		}
	}()
	for range processes {
		p, err := start(ctx)
		if err != nil {
			return err
		}
		crew = append(crew, p)
	}
	w.loads++
	fleet, err := load.Open(ctx, load.Config{
		Address: w.broker.Address(), Name: fmt.Sprintf("load-%d", w.loads), Senders: senders,
		Receipts: receipts, Next: next, Resend: w.resend,
	})
	if err != nil {
		return err
	}
	defer fleet.Close()
	return use(fleet, crew)
}

// flood is the throughput of a number of processes, as a side of a comparison. It adds to costs.
func (w *wire) flood(
	start worker, processes int, events *stream, costs *wireCosts,
) func(context.Context, time.Duration) (float64, error) {
	return func(ctx context.Context, d time.Duration) (perSecond float64, err error) {
		err = w.run(ctx, start, processes, events.publication, func(fleet *load.Load, crew []*process) error {
			return costs.around(w.programs(crew), func() (_ int, err error) {
				perSecond, err = fleet.Flood(ctx, w.lab.outstanding, w.lab.warm(), d)
				return fleet.Counts().Answered, err
			})
		})
		return perSecond, err
	}
}

// warm is how long a process works before it is measured.
func (l *Lab) warm() time.Duration { return min(time.Second, l.slice/2) }

// publication is the next event as a cabinet publishes it.
func (s *stream) publication() (load.Event, error) { return publication(s.next()) }

func publication(e *cabinet.Event) (load.Event, error) {
	payload, err := e.MarshalJSON()
	if err != nil {
		return load.Event{}, fmt.Errorf("encode event %d/%s: %w", e.DeviceID, e.CloseEventID, err)
	}
	return load.Event{Topic: cabinet.DoorClosedTopic(e.DeviceID), ID: e.CloseEventID, Payload: payload}, nil
}

// visit is the next event, of a certain cabinet.
func (s *stream) visit(deviceID int64) *cabinet.Event {
	e := s.next()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.seq[e.DeviceID]--
	s.seq[deviceID]++
	e.DeviceID, e.Seq = deviceID, s.seq[deviceID]
	return e
}

// of makes a stream of a part of the cabinets, which goes on with their sequences. The two aren't used at one time.
func (s *stream) of(cabinets int) *stream {
	part := newStream(uint64(cabinets), cabinets, past{}) //nolint:gosec // a small number
	part.seq = s.seq
	return part
}

// chooseCrew finds the number of workers with which the usual design's process is at its best, once for all parts.
func (w *wire) chooseCrew(ctx context.Context) error {
	if w.lab.wireCrew > 0 {
		w.rival.workers = w.lab.wireCrew
		return nil
	}
	best, most := 0, 0.0
	for _, workers := range crews {
		w.rival.workers = workers
		rate, err := w.flood(w.usual, 1, w.same, &wireCosts{})(ctx, w.lab.search)
		if err != nil {
			return err
		}
		if rate > most {
			best, most = workers, rate
		}
	}
	w.lab.say("usual design is at its best with %d workers: %.0f/s", best, most)
	w.rival.workers, w.lab.wireCrew = best, best
	return nil
}
