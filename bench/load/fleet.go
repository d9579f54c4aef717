package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	dialsAtOnce = 64
	idleBuffer  = 512 // what an idle cabinet needs: a few small packets
)

// Fleet is cabinets that are connected and have nothing to say but that they are there.
type Fleet struct {
	conns  []*conn
	tasks  sync.WaitGroup
	ended  chan error
	closed chan struct{}
}

// Connect connects a number of cabinets, each with an account of its own and subscriptions to the filters that topics names.
func Connect(ctx context.Context, address string, cabinets int, account func(n int) Account, topics func(n int) []string) (*Fleet, error) {
	f := &Fleet{conns: make([]*conn, cabinets), ended: make(chan error, cabinets), closed: make(chan struct{})}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialsAtOnce)
	for n := range cabinets {
		group.Go(func() (err error) {
			if f.conns[n], err = dial(ctx, address, account(n), idleBuffer); err != nil {
				return err
			}
			return f.conns[n].subscribe(topics(n)...)
		})
	}
	if err := group.Wait(); err != nil {
		f.Close()
		return nil, fmt.Errorf("connect %d cabinets (is the limit of open files above that?): %w", cabinets, err)
	}
	for _, c := range f.conns {
		f.tasks.Go(func() { f.ended <- c.listen(func([]byte) {}) })
	}
	f.tasks.Go(f.keepAlive)
	return f, nil
}

// keepAlive pings well within the keep-alive that the cabinets have named.
func (f *Fleet) keepAlive() {
	tick := time.NewTicker(keepAlive / 2)
	defer tick.Stop()
	for {
		select {
		case <-f.closed:
			return
		case <-tick.C:
			for _, c := range f.conns {
				_ = c.ping() // listen tells that the connection has ended
			}
		}
	}
}

// Err is why one of the connections has ended, or nil while all stand.
func (f *Fleet) Err() error {
	select {
	case err := <-f.ended:
		return errors.Join(errors.New("the broker ended the connection of a cabinet"), err)
	default:
		return nil
	}
}

// Close ends the connections and waits for them.
func (f *Fleet) Close() {
	close(f.closed)
	for _, c := range f.conns {
		if c != nil {
			_ = c.Close()
		}
	}
	f.tasks.Wait()
}

// Retain has the broker keep a message for each number below cabinets, and returns when it has acknowledged all.
func Retain(ctx context.Context, address string, cabinets int, message func(n int) (topic string, payload []byte)) error {
	c, err := dial(ctx, address, Account{ClientID: "retain"}, buffer)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	kept := make(chan error, 1)
	go func() { kept <- c.acknowledged(cabinets) }()
	for n := range cabinets {
		topic, payload := message(n)
		if err = c.publish(topic, payload, true); err != nil {
			break
		}
	}
	err = errors.Join(err, c.flush())
	if err != nil {
		_ = c.Close()
	}
	if err = errors.Join(err, <-kept); err != nil {
		return fmt.Errorf("have the broker keep %d messages: %w", cabinets, err)
	}
	return nil
}
