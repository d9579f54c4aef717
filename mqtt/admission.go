package mqtt

import (
	"container/list"
	"sync"
)

// admission bounds the messages that in-process clients have not acknowledged, by number and by bytes. Who finds no room
// waits in line; as each connection waits for one message at a time, a burst on one does not starve the others.
type admission struct {
	mu              sync.Mutex
	messages, bytes int // still free; what take takes may bring them below zero
	most            int
	line            list.List // of *place
}

// place is a message's room in the window, or its place in line for it.
type place struct {
	size  int
	grant chan struct{} // closed once it has room
	at    *list.Element
}

func newAdmission(messages, bytes int) *admission {
	return &admission{messages: messages, bytes: bytes, most: messages}
}

// enter takes room for a message, or a place in line for it. A granted place is given back by free, one still in line by
// leave.
func (a *admission) enter(size int) *place {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := &place{size: size, grant: make(chan struct{})}
	p.at = a.line.PushBack(p)
	a.advance()
	return p
}

func (p *place) granted() bool {
	select {
	case <-p.grant:
		return true
	default:
		return false
	}
}

// leave gives up a place, granted or not.
func (a *admission) leave(p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.granted() {
		a.messages++
		a.bytes += p.size
	} else {
		a.line.Remove(p.at)
	}
	a.advance()
}

// advance admits from the head of the line. A message larger than the whole window is admitted alone.
func (a *admission) advance() {
	for head := a.line.Front(); head != nil; head = a.line.Front() {
		p := head.Value.(*place)
		if a.messages <= 0 || a.bytes < p.size && a.messages < a.most {
			return
		}
		a.line.Remove(head)
		a.messages--
		a.bytes -= p.size
		close(p.grant)
	}
}

func (a *admission) take(size int) {
	a.mu.Lock()
	a.messages--
	a.bytes -= size
	a.mu.Unlock()
}

func (a *admission) free(size int) {
	a.mu.Lock()
	a.messages++
	a.bytes += size
	a.advance()
	a.mu.Unlock()
}

// paused is the number of those in line.
func (a *admission) paused() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.line.Len()
}
