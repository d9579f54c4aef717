package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"doortab/fleet"
	"doortab/mqtt"
)

const (
	// evictAfter is when no process lets a replaced secret in any more: beyond what fleet.Authenticator may still believe.
	evictAfter = 25 * time.Second
	// evictUntil is the limit after a rotation within which the old connection must have ended, with a margin.
	evictUntil = 55 * time.Second
	evictEvery = 5 * time.Second
	// evictWait is how long one connection may take. They are made one after the other: rotations are rare.
	evictWait = 5 * time.Second
)

// evictor ends connections that an external broker let in with a secret that has been replaced since. The broker asks only
// when a client connects, so a worker connects once under the cabinet's client id: whoever had it before loses it (MQTT
// 3.1.1, 3.1.4). A cabinet that is back with its new secret loses its connection once more.
type evictor struct {
	registry *fleet.Registry
	client   mqtt.Config // of the workers' account, without a client id
	done     map[fleet.Rotation]time.Time
}

func (n *node) runEvictor(ctx context.Context) {
	e := evictor{registry: fleet.NewRegistry(n.db), client: n.client, done: map[fleet.Rotation]time.Time{}}
	e.client.MaxBackoff = time.Second
	ticker := time.NewTicker(evictEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := e.pass(ctx, time.Now()); err != nil && ctx.Err() == nil {
			n.log.Warn("Connections with a replaced secret may still be open; trying again.", "error", err)
		}
	}
}

// pass ends those connections whose time has come.
func (e *evictor) pass(ctx context.Context, now time.Time) error {
	list, err := e.registry.Rotations(ctx, now.Add(-evictUntil), now.Add(-evictAfter))
	if err != nil {
		return err
	}
	for _, rotation := range list {
		if _, done := e.done[rotation]; done {
			continue
		}
		if err := e.evict(ctx, rotation.DeviceID); err != nil {
			return err
		}
		e.done[rotation] = now
	}
	for rotation, at := range e.done {
		if now.Sub(at) > evictUntil {
			delete(e.done, rotation)
		}
	}
	return nil
}

func (e *evictor) evict(ctx context.Context, deviceID int64) error {
	ctx, cancel := context.WithTimeout(ctx, evictWait)
	defer cancel()
	taken := make(chan struct{}, 1)
	config := e.client
	config.ClientID = strconv.FormatInt(deviceID, 10)
	config.OnConnect = func() {
		select {
		case taken <- struct{}{}:
		default: // connected again
		}
	}
	client, err := mqtt.New(config)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = client.Run(ctx) // fails only where it ran before
	}()
	select {
	case <-taken:
		err = client.Drain(ctx)
	case <-ctx.Done():
		err = fmt.Errorf("take the connection of cabinet %d over: %w", deviceID, ctx.Err())
	}
	cancel()
	<-ended
	return err
}
