package services

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
)

// Ports are taken from below the range that Linux gives to outgoing connections (from 32768 on). In that range a client that
// dials a service which is down may get the service's own port, and then holds it against the service, or talks to itself.
const (
	firstPort = 20000
	ports     = 12000
)

const portAttempts = 20

// freePort finds a port that nothing listens on at the moment.
func freePort() (int, error) {
	var err error
	for range portAttempts {
		port := firstPort + rand.IntN(ports) //nolint:gosec // not a secret
		var listener net.Listener
		if listener, err = net.Listen("tcp", address(port)); err == nil {
			return port, listener.Close()
		}
	}
	return 0, fmt.Errorf("find a free port from %d on: %w", firstPort, err)
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// startOnFreePort starts the process for the first time; configure writes its configuration for a port. Another program may
// take the port before the process does; then it is another's.
func (p *Process) startOnFreePort(ctx context.Context, configure func(port int) error) error {
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return fmt.Errorf("start %s: %w", p.name, err)
		}
		if err := configure(port); err != nil {
			return fmt.Errorf("configure %s: %w", p.name, err)
		}
		err = p.Start(ctx)
		if err == nil || attempt == portAttempts || p.running == nil || !strings.Contains(p.log(), "Address already in use") {
			return err
		}
	}
}
