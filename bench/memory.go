package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"doortab/bench/load"
	"doortab/cabinet"
)

var memoryPart = part{
	name: "memory", about: "resident memory with every cabinet known and under load, and for each cabinet connected to the embedded broker",
	run: measureMemory,
	goals: []goal{
		{label: "MiB with 100,000 known cabinets, under load", value: byDoortab, must: 192, aim: 96, most: true},
		{label: "KiB for each connected cabinet", value: byDetail("kib_per_connected_cabinet"), must: 60, aim: 33, most: true},
	},
}

const (
	sampleEvery = 100 * time.Millisecond
	spareFiles  = 200 // for everything but the connections of cabinets
)

// embedded is where cabinets reach the broker of a `doortab serve` that has one.
var embedded = regexp.MustCompile(`msg=Serving\..* mqtt=tcp://(\S+)`)

func measureMemory(ctx context.Context, l *Lab) (Figure, error) {
	w, err := l.newWire(ctx, l.known)
	if err != nil {
		return Figure{}, err
	}
	f, err := w.measureMemory(ctx)
	return f, w.end(ctx, err)
}

func (w *wire) measureMemory(ctx context.Context) (Figure, error) {
	if err := w.know(ctx); err != nil {
		return Figure{}, err
	}
	known, err := w.loaded(ctx, w.doortab, w.events, w.lab.known)
	if err != nil {
		return Figure{}, err
	}
	w.lab.say("doortab takes %.0f MiB with %d known cabinets", known, w.lab.known)
	usual, err := w.loaded(ctx, w.usual, w.same, w.lab.cabinets)
	if err != nil {
		return Figure{}, err
	}
	f := newFigure(known, usual, "MiB")
	f.Details["known_cabinets"] = float64(w.lab.known)
	return f, w.measureConnected(ctx, f.Details)
}

// know has the broker keep a status of each cabinet.
func (w *wire) know(ctx context.Context) error {
	return load.Retain(ctx, w.broker.Address(), w.lab.known, func(n int) (topic string, payload []byte) {
		return cabinet.StatusTopic(int64(n + 1)), []byte(`{"online":true,"bootId":"7f3a"}`)
	})
}

// loaded has a process settle one event of each cabinet, and then returns the most MiB that it takes under full load.
func (w *wire) loaded(ctx context.Context, start worker, events *stream, cabinets int) (most float64, err error) {
	visited := 0
	next := func() (load.Event, error) {
		if visited < cabinets {
			visited++
			return publication(events.visit(int64(visited)))
		}
		return events.publication()
	}
	err = w.run(ctx, start, 1, next, func(fleet *load.Load, crew []*process) error {
		if err := fleet.Backlog(ctx, cabinets); err != nil {
			return err
		}
		samples := crew[0].sample(sampleEvery)
		_, err := fleet.Flood(ctx, w.lab.outstanding, w.lab.warm(), w.lab.slice)
		peak, failed := samples()
		most = peak
		return errors.Join(err, failed)
	})
	return most, err
}

// measureConnected lets cabinets connect to the embedded broker of a process that does nothing else.
func (w *wire) measureConnected(ctx context.Context, details map[string]float64) (err error) {
	cabinets, err := w.openable()
	if err != nil {
		return err
	}
	if err := w.giveSecrets(ctx, cabinets); err != nil {
		return err
	}
	p, err := startProcess(ctx, w.lab.program, []*regexp.Regexp{serving, embedded}, "serve", "--database-dsn="+w.product.dsn,
		"--redis-url="+w.lab.servers.Redis.URL(), "--mqtt-listen=127.0.0.1:0", "--http-addr=127.0.0.1:0", "--currency="+currency)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	alone, _, err := p.resident()
	if err != nil {
		return err
	}
	fleet, err := load.Connect(ctx, p.found[1][1], cabinets, account, ownTopics)
	if err != nil {
		return err
	}
	defer fleet.Close()
	w.lab.say("%d cabinets are connected, %.0f s until they are idle", cabinets, w.lab.idle.Seconds())
	if err := wait(ctx, w.lab.idle); err != nil {
		return err
	}
	together, _, err := p.resident()
	details["connected_cabinets"] = float64(cabinets)
	details["mib_without_cabinets"], details["mib_with_cabinets"] = mib(alone), mib(together)
	details["kib_per_connected_cabinet"] = float64(together-alone) / 1024 / float64(cabinets)
	return errors.Join(err, fleet.Err())
}

// openable is how many cabinets can be connected where each takes an open file in this process and one in the other.
func (w *wire) openable() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	if room := int(limit.Max) - spareFiles; room < w.lab.connected { //nolint:gosec // a limit above 2^63 is none
		w.lab.say("only %d cabinets can be connected: the limit of open files is %d (ulimit -n)", room, limit.Max)
		return room, nil
	}
	return w.lab.connected, nil
}

// giveSecrets makes the secret of each cabinet what account says.
func (w *wire) giveSecrets(ctx context.Context, cabinets int) error {
	_, err := w.product.db.SQL().ExecContext(ctx, `UPDATE cabinets SET secret_hash = UNHEX(SHA2(CONCAT('secret of ', device_id), 256)),
		secret_changed_at = UTC_TIMESTAMP(3) - INTERVAL 1 DAY WHERE device_id <= ?`, cabinets)
	if err != nil {
		return fmt.Errorf("give the cabinets secrets: %w", err)
	}
	return nil
}

// account is that of the cabinet n + 1.
func account(n int) load.Account {
	id := strconv.Itoa(n + 1)
	return load.Account{ClientID: id, User: id, Password: "secret of " + id}
}

func ownTopics(n int) []string {
	deviceID := int64(n + 1)
	return []string{cabinet.ReceiptsTopic(deviceID), cabinet.UnlockTopic(deviceID)}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
