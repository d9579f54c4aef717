package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// headroom is how many bytes of garbage may gather between two collections, whatever lives. Go's own measure, as much
	// again as lives, has a small process collect many times a second (a seventh of its processor time under load), and gives
	// one with many connections twice the memory that it needs.
	headroom  = 24 << 20
	leastGOGC = 20
	mostGOGC  = 800

	tuneEvery = time.Second
	idleFor   = 10 * time.Second
)

// What the collector counts as its base, and what has been allocated beyond: see runtime/metrics.
var heapSamples = []string{
	"/gc/heap/live:bytes", "/gc/scan/stack:bytes", "/gc/scan/globals:bytes", "/memory/classes/heap/objects:bytes", "/gc/cycles/total:gc-cycles",
}

type heap struct{ live, stacks, globals, objects, cycles uint64 }

// keepHeadroom adapts the collector to what lives, until ctx ends. An operator who has set GOGC or GOMEMLIMIT knows better.
func keepHeadroom(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	tick := time.NewTicker(tuneEvery)
	defer tick.Stop()
	percent, cycles, since := 100, uint64(0), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h := readHeap()
		if p := gcPercent(h); p != percent {
			percent = p
			debug.SetGCPercent(p)
		}
		if h.cycles != cycles {
			cycles, since = h.cycles, time.Now()
		} else if time.Since(since) > idleFor && h.objects > h.live+h.live/8 {
			runtime.GC() // after a burst, such as a whole fleet that connects, its garbage and its stacks would stay
		}
	}
}

func readHeap() heap {
	samples := make([]metrics.Sample, len(heapSamples))
	for i, name := range heapSamples {
		samples[i].Name = name
	}
	metrics.Read(samples)
	return heap{
		samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64(), samples[3].Value.Uint64(), samples[4].Value.Uint64(),
	}
}

// gcPercent is the GOGC that leaves headroom: the collector allows that share of what lives, stacks and globals included.
func gcPercent(h heap) int {
	base := max(1, h.live+h.stacks+h.globals)
	return int(min(max(headroom*100/base, leastGOGC), mostGOGC))
}
