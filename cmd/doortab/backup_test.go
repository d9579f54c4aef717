package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"doortab/services"
	"doortab/services/servicestest"
)

// The commands of docs/backup.md, with sales before, while and after the dump is made. After it some events are answered, and
// others are settled while nobody hears their receipts: those the cabinets still have.
func TestRestore(t *testing.T) {
	t.Parallel()
	for name, withLogs := range map[string]bool{"a dump alone": false, "a dump and the binary logs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRestore(t)
			r.live()
			restored := r.goBack(withLogs)
			if withLogs && restored != r.settled {
				t.Errorf("%d settlements are back, want all %d", restored, r.settled)
			}
			if !withLogs && restored >= r.settled {
				t.Errorf("%d settlements are back of %d: nothing was after the dump", restored, r.settled)
			}
			r.goOn(restored, withLogs)
		})
	}
}

var gaps = regexp.MustCompile(`(?m)^doortab_sequence_gaps_total [1-9]`)

// restoration is an installation that loses its database.
type restoration struct {
	*installation
	sh      *shell
	broker  *services.Mosquitto
	args    []string
	settled int               // events before the loss
	kept    map[eventKey]bool // events without a receipt, and whether they were settled before the loss
	payload map[eventKey][]byte
}

func newRestore(t *testing.T) *restoration {
	t.Helper()
	options := servicestest.Small()
	options.Program = "" // the page is about MariaDB
	options.Arguments = []string{"--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=1", "--server-id=1"}
	server := servicestest.Start(t, services.Options{MariaDB: options}).MariaDB
	in, broker := newInstallationOn(t, server, 4), mosquitto(t)
	return &restoration{
		installation: in, sh: newShell(t, server, in.dsn), broker: broker,
		args: []string{"--mqtt-url=" + broker.URL(), "--redis-url=" + servicestest.Redis(t).URL()},
		kept: map[eventKey]bool{}, payload: map[eventKey][]byte{},
	}
}

// doors are events of every cabinet with these places in its sequence.
func (r *restoration) doors(first, last int64, each func(key eventKey, payload []byte)) {
	for seq := first; seq <= last; seq++ {
		for device := firstDevice; device < firstDevice+4; device++ {
			key := eventKey{int64(device), fmt.Sprint("event-", seq)}
			if r.payload[key] == nil {
				text := string(sale(key.deviceID, key.id, seq%products+1, 1))
				r.payload[key] = []byte(strings.Replace(text, `"userId"`, fmt.Sprintf(`"seq":%d,"userId"`, seq), 1))
			}
			each(key, r.payload[key])
		}
	}
}

func (r *restoration) live() {
	r.t.Helper()
	s := r.serve(r.args...)
	box := newOutbox(connect(r.t, connection{url: r.broker.URL(), clientID: "cabinets"}), time.Second)
	post := func(key eventKey, payload []byte) {
		box.post(key.deviceID, key.id, payload)
		r.settled++
	}
	r.doors(1, 10, post)
	box.drain(30 * time.Second)
	dumped := make(chan string, 1)
	go func() { dumped <- r.sh.run(page(r.t, "backup.md", "## A dump", "sh")[0]) }()
	r.doors(11, 20, post)
	if said := <-dumped; said != "" {
		r.t.Errorf("the dump says %s", said)
	}
	if last := r.sh.run("zcat doortab.sql.gz | tail -1"); !strings.Contains(last, "-- Dump completed") {
		r.t.Errorf("the dump ends with %q", last)
	}
	r.doors(21, 25, post)
	box.drain(30 * time.Second)
	deaf := connect(r.t, connection{url: r.broker.URL(), clientID: "deaf", deaf: true})
	r.doors(26, 28, func(key eventKey, payload []byte) {
		deaf.publish(key.deviceID, payload)
		r.settled++
		r.kept[key] = true
	})
	eventually(r.t, 30*time.Second, "all is settled", func() bool { return r.count("SELECT COUNT(*) FROM settlements") == r.settled })
	s.kill()
}

// goBack restores and returns how many settlements there are then.
func (r *restoration) goBack(withLogs bool) int {
	r.t.Helper()
	blocks := page(r.t, "backup.md", "## Restore a dump", "sh")
	if len(blocks) != 3 {
		r.t.Fatalf("the page has %d blocks, want: dump, logs, and the rest", len(blocks))
	}
	r.sh.run("mkdir saved && cp $(mariadb -Ne 'SELECT @@datadir')binlog.[0-9]* saved/")
	r.sh.run(blocks[0])
	if withLogs {
		r.sh.run(blocks[1])
	}
	if said := r.sh.run(blocks[2]); strings.Count(said, " 0 violations") < 5 {
		r.t.Errorf("the audit says %s", said)
	}
	return r.count("SELECT COUNT(*) FROM settlements")
}

// goOn serves what the cabinets have, old and new.
func (r *restoration) goOn(restored int, withLogs bool) {
	r.t.Helper()
	box := newOutbox(connect(r.t, connection{url: r.broker.URL(), clientID: "later"}), time.Second)
	r.doors(29, 30, func(key eventKey, _ []byte) { r.kept[key] = false })
	s := r.serve(append(r.args, "--gap-patience=1s")...)
	for key := range r.kept {
		box.post(key.deviceID, key.id, r.payload[key])
	}
	box.drain(30 * time.Second)
	box.consistent()
	want := restored + len(r.kept)
	for key, before := range r.kept {
		firsts := 1
		if before && withLogs {
			firsts = 0
			want--
		}
		if n := sameReceipts(r.t, box.heard(key)); n != firsts {
			r.t.Errorf("%v: %d receipts that aren't duplicates, want %d", key, n, firsts)
		}
	}
	r.settledOnce(want)
	if withLogs {
		return
	}
	eventually(r.t, 20*time.Second, "gaps tell of the sales that are gone", func() bool {
		_, text, err := r.client.request("GET", s.http+"/metrics", "")
		return err == nil && gaps.Match(text)
	})
}
