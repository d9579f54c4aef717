package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands in front of a service for the length of a test. Up and down copy one direction of a connection each.
func proxy(t *testing.T, target string, up, down func(to io.Writer, from io.Reader)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	relay := func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		defer server.Close()
		closeBoth := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
		defer closeBoth()
		ended := make(chan struct{}, 2)
		running.Go(func() { up(server, client); ended <- struct{}{} })
		running.Go(func() { down(client, server); ended <- struct{}{} })
		<-ended
	}
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { relay(client) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

func plainCopy(to io.Writer, from io.Reader) { _, _ = io.Copy(to, from) }

// late copies each piece only after a delay.
func late(delay time.Duration) func(io.Writer, io.Reader) {
	return func(to io.Writer, from io.Reader) {
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			time.Sleep(delay) // this is what it is for, not a wait for something
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}

// countAcks copies MQTT packets and counts the PUBACKs among them: what a worker acknowledges to its broker.
func countAcks(acks *atomic.Int64) func(io.Writer, io.Reader) {
	return func(to io.Writer, from io.Reader) {
		packets := bufio.NewReader(from)
		for {
			packet, err := readPacket(packets)
			if err != nil {
				return
			}
			if packet[0]>>4 == 4 { // MQTT 3.1.1, 2.2.1
				acks.Add(1)
			}
			if _, err := to.Write(packet); err != nil {
				return
			}
		}
	}
}

// readPacket reads one control packet: a byte, a length in up to four bytes of seven bits (MQTT 3.1.1, 2.2.3), the rest.
func readPacket(r *bufio.Reader) ([]byte, error) {
	first, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	packet, length := []byte{first}, 0
	for shift := 0; shift < 28; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		packet = append(packet, b)
		length |= int(b&0x7f) << shift
		if b&0x80 == 0 {
			break
		}
	}
	head := len(packet)
	packet = append(packet, make([]byte, length)...)
	_, err = io.ReadFull(r, packet[head:])
	return packet, err
}

// nobody is an address where nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
