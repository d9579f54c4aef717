package simulator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"doortab/cabinet"
	"doortab/services/servicestest"
	"doortab/simulator/physical"
)

func TestACabinetOpensForTheSessionThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	url := servicestest.Mosquitto(t).URL()
	l := listen(t, url, 2010)
	d, _ := startDevice(t, url, 2010)
	eventually(t, "the cabinet is online", func() bool { return l.lastStatus() == `{"online":true,"bootId":"run"}` })
	opened := make(chan bool, 1)
	go func() { opened <- d.unlocked(t.Context(), "s-2") }()
	for _, payload := range []string{"not JSON", `{"sessionId":"s-1"}`, `{"sessionId":"s-2","closeEventId":"e-2","kind":"sale"}`} {
		if !l.client.Publish(cabinet.UnlockTopic(2010), 0, false, payload).WaitTimeout(5 * time.Second) {
			t.Fatal("the unlock wasn't taken by the broker")
		}
	}
	if !<-opened {
		t.Error("the cabinet did not hear the unlock")
	}
	eventually(t, "the cabinet says that its door is open", func() bool { return l.saidOf("s-2") })
}

func TestAnEventOfASessionLeavesTheUserToDoortab(t *testing.T) {
	t.Parallel()
	s := &Simulator{books: newBooks()}
	d := newDevice(&surroundings{runID: "run", books: s.books}, 2011, testCabinet(physical.KindWeight))
	v := visit{userID: 42}
	s.visit(d, v, doorSession{"s-1", "e-1"})
	s.visit(d, v, doorSession{})
	entries, _ := s.books.all()
	got := ""
	for _, e := range entries {
		got += fmt.Sprintln(e.key.id, e.userID, e.seq, e.kind)
	}
	if want := "e-1 42 1 weight\nrun-2011-2 42 2 weight\n"; got != want {
		t.Errorf("entries\n%s, want\n%s", got, want)
	}
	if sent := string(d.outbox.messages[0].payload); !strings.Contains(sent, `"sessionId":"s-1"`) || strings.Contains(sent, "userId") {
		t.Errorf("the event of the session says %s", sent)
	}
	if s.sessions.Load() != 1 {
		t.Errorf("%d doors by session", s.sessions.Load())
	}
}
