package ratelimit

import (
	"fmt"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

func TestALocalLimitServesABurstAndThenTheRate(t *testing.T) {
	t.Parallel()
	l := newLocal(Limit{2, 3, time.Second}, maxKeys)
	for n := range 3 {
		if wait := l.allow("a", start); wait != 0 {
			t.Errorf("call %d of the burst waits %s", n+1, wait)
		}
	}
	for range 5 { // refusals don't push the next call away
		if wait := l.allow("a", start); wait != 500*time.Millisecond {
			t.Errorf("behind the burst: %s, want 500ms", wait)
		}
	}
	if wait := l.allow("b", start); wait != 0 {
		t.Errorf("another key waits %s", wait)
	}
	if wait := l.allow("a", start.Add(500*time.Millisecond)); wait != 0 {
		t.Errorf("in its time: %s", wait)
	}
	if wait := l.allow("a", start.Add(600*time.Millisecond)); wait != 400*time.Millisecond {
		t.Errorf("too early again: %s, want 400ms", wait)
	}
}

func TestALocalLimitForgetsWhoHasRestedAndNobodyElse(t *testing.T) {
	t.Parallel()
	l := newLocal(Limit{1, 4, time.Second}, maxKeys)
	now := start
	for range 4 {
		l.allow("busy", now)
		l.allow("once", now)
	}
	refused := 0
	for range 200 { // 20 s, five generations: busy asks all the time and gets one a second
		now = now.Add(100 * time.Millisecond)
		if l.allow("busy", now) > 0 {
			refused++
		}
	}
	if refused != 180 {
		t.Errorf("%d of 200 calls refused, want 180", refused)
	}
	if _, kept := l.now["once"]; kept || l.old["once"] != nil {
		t.Error("who has rested for long is still remembered")
	}
}

func TestALocalLimitsMemoryIsBounded(t *testing.T) {
	t.Parallel()
	const most = 100
	l := newLocal(Limit{1, 1, time.Hour}, most)
	for n := range 10 * most {
		l.allow(fmt.Sprint(n), start)
		if kept := len(l.now) + len(l.old); kept > 2*most {
			t.Fatalf("%d keys are remembered, want %d at most", kept, 2*most)
		}
	}
	if l.allow(fmt.Sprint(10*most-1), start) == 0 {
		t.Error("the last one is forgotten")
	}
}
