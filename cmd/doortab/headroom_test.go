package main

import "testing"

func TestCollectorLeavesTheSameHeadroomWhateverLives(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		heap heap
		want int
	}{
		"a process that just began":        {heap{live: 1 << 20}, mostGOGC},
		"a busy one":                       {heap{live: 10 << 20, stacks: 1 << 20, globals: 1 << 20}, 200},
		"one with a fleet of connections":  {heap{live: 60 << 20, stacks: 36 << 20}, 25},
		"one with more than can be spared": {heap{live: 10 << 30}, leastGOGC},
		"nothing at all":                   {heap{}, mostGOGC},
	} {
		if got := gcPercent(c.heap); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestHeapIsReadFromTheRuntime(t *testing.T) {
	t.Parallel()
	if h := readHeap(); h.objects == 0 || h.stacks == 0 && h.cycles > 0 || h.globals == 0 && h.cycles > 0 {
		t.Errorf("%+v", h)
	}
}
