package simulator

import (
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestResendWaitDoublesAndIsSpread(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		tries int
		luck  float64
		want  time.Duration
	}{
		{"first, earliest", 1, 0, 8 * time.Second},
		{"first, middle", 1, 0.5, 10 * time.Second},
		{"first, latest", 1, 1, 12 * time.Second},
		{"second", 2, 0.5, 20 * time.Second},
		{"fifth", 5, 0.5, 160 * time.Second},
		{"sixth is capped", 6, 0.5, 5 * time.Minute},
		{"hundredth", 100, 0.5, 5 * time.Minute},
		{"hundredth, latest", 100, 1, 6 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := resendWait(10*time.Second, 5*time.Minute, tt.tries, tt.luck)
			if got.Round(time.Millisecond) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func middle() float64 { return 0.5 }

func ids(list []*message) (out []string) {
	for _, m := range list {
		out = append(out, m.id)
	}
	return out
}

func TestAnEventStaysUntilItsReceipt(t *testing.T) {
	t.Parallel()
	o := outbox{first: 10 * time.Second, last: 5 * time.Minute}
	o.put(&message{id: "a", dueAt: noon}, &message{dueAt: noon}, &message{id: "b", dueAt: noon.Add(3 * time.Second)})
	send, next := o.due(noon, middle)
	if len(send) != 2 || !next.Equal(noon.Add(3*time.Second)) {
		t.Fatalf("sent %q, next at %s; want a and the copy, then b", ids(send), next)
	}
	if send, _ = o.due(noon.Add(9*time.Second), middle); len(send) != 1 || send[0].id != "b" {
		t.Fatalf("after 9 s %q was sent, want only b: the copy waits for nothing, a is due after 10 s", ids(send))
	}
	if send, _ = o.due(noon.Add(10*time.Second), middle); len(send) != 1 || send[0].id != "a" || send[0].tries != 2 {
		t.Fatalf("after 10 s %q was sent, want a again", ids(send))
	}
	o.answered("a", false, noon)
	o.answered("never reported", false, noon)
	if o.waiting() != 1 || o.resends != 1 {
		t.Errorf("%d wait and %d were sent again, want b and a", o.waiting(), o.resends)
	}
	if send, next = o.due(noon.Add(time.Hour), middle); len(send) != 1 || next.IsZero() {
		t.Errorf("b is sent for ever: got %q, next at %s", ids(send), next)
	}
}

func TestOtherContentFollowsTheReceiptAndWaitsForTheConflict(t *testing.T) {
	t.Parallel()
	o := outbox{first: 10 * time.Second, last: 5 * time.Minute}
	o.put(&message{id: "a", dueAt: noon, then: &message{id: "a", changed: true}, thenAfter: time.Second})
	o.due(noon, middle)
	o.answered("a", true, noon)
	if o.waiting() != 1 {
		t.Fatal("a conflict answers the other content, not the event")
	}
	o.answered("a", false, noon)
	send, _ := o.due(noon.Add(time.Second), middle)
	if len(send) != 1 || !send[0].changed {
		t.Fatalf("a second after the receipt %d messages were sent, want the other content", len(send))
	}
	o.answered("a", false, noon)
	if o.waiting() != 1 {
		t.Fatal("a repeated receipt answers the event, not the other content")
	}
	o.answered("a", true, noon)
	if o.waiting() != 0 {
		t.Error("the conflict is the answer to the other content")
	}
}

// Whoever repeats everything quickly at the end buries a Doortab that is merely slow.
func TestHurryKeepsTheBackOff(t *testing.T) {
	t.Parallel()
	o := outbox{first: 10 * time.Second, last: 5 * time.Minute}
	const events = 50
	for range events {
		o.put(&message{id: "e", dueAt: noon})
	}
	o.due(noon, middle)
	o.due(noon.Add(10*time.Second), middle)
	closing, before := noon.Add(11*time.Second), o.resends
	o.hurry(closing, middle)
	for at := time.Duration(0); at <= 8*time.Second; at += 100 * time.Millisecond {
		o.due(closing.Add(at), middle)
	}
	if more := o.resends - before; more != 2*events {
		t.Errorf("%d events were sent again %d times in a drain of 8 s, want twice each", events, more)
	}
}

func TestHurryLetsNothingWait(t *testing.T) {
	t.Parallel()
	o := outbox{first: 10 * time.Second, last: 5 * time.Minute}
	o.put(&message{id: "sent", dueAt: noon})
	o.due(noon, middle)
	o.put(&message{id: "held", dueAt: noon.Add(time.Minute)}, &message{dueAt: noon.Add(time.Minute)})
	o.hurry(noon, middle)
	if send, next := o.due(noon, middle); len(send) != 2 || !next.Equal(noon.Add(2*time.Second)) {
		t.Errorf("sent %q, next at %s: want what was held back at once, the other within two seconds", ids(send), next)
	}
	if send, next := o.due(noon.Add(2*time.Second), middle); len(send) != 2 || !next.Equal(noon.Add(6*time.Second)) {
		t.Errorf("sent %q, next at %s: want both again, and then four seconds later", ids(send), next)
	}
}
