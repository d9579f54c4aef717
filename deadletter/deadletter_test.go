package deadletter_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/deadletter"
	"doortab/services/servicestest"
)

func TestMain(m *testing.M) { servicestest.Main(m) }

func letter(topic, payload, reason string) deadletter.Letter {
	return deadletter.Letter{
		Topic: topic, Payload: []byte(payload), Size: len(payload), Digest: sha256.Sum256([]byte(payload)), Reason: reason,
		Detail: strings.Repeat("ü", 600) + "\xff", ReceivedAt: database.Now(),
	}
}

func insert(t *testing.T, db *database.DB, letters ...deadletter.Letter) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *gorm.DB) error { return deadletter.Insert(tx, letters, database.Now()) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestALetterIsKeptOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	known := letter("a", "x", "malformed")
	known.DeviceID, known.CloseEventID, known.Size = 1001, "e", 70_000
	insert(t, db, known, letter("a", "y", "malformed"))
	insert(t, db, known, known, letter("b", "x", "malformed"), letter("a", "x", "internal"))
	list, err := deadletter.List(t.Context(), db, 0, 10)
	if err != nil || len(list) != 4 {
		t.Fatalf("%d letters, %v", len(list), err)
	}
	copies := int64(0)
	for i, kept := range list {
		copies += kept.Copies
		if len([]rune(kept.Detail)) != 500 || i > 0 && kept.DeadLetterID >= list[i-1].DeadLetterID {
			t.Errorf("letter %d: %+v", i, kept)
		}
		if kept.Copies == 3 && (*kept.DeviceID != 1001 || *kept.CloseEventID != "e" || kept.Size != 70_000 || string(kept.Payload) != "x") {
			t.Errorf("%+v", kept)
		}
		if kept.Copies == 1 && (kept.DeviceID != nil || kept.CloseEventID != nil) {
			t.Errorf("%+v", kept)
		}
	}
	if copies != 6 {
		t.Errorf("%d copies of 6", copies)
	}
	next, err := deadletter.List(t.Context(), db, list[1].DeadLetterID, 1)
	if err != nil || len(next) != 1 || next[0].DeadLetterID != list[2].DeadLetterID {
		t.Errorf("behind the second: %+v, %v", next, err)
	}
}

func TestALetterIsRemovedOnceAndLeavesALine(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	insert(t, db, letter("a", "x", "malformed"), letter("a", "y", "malformed"))
	list, err := deadletter.List(t.Context(), db, 0, 10)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d letters, %v", len(list), err)
	}
	ctx := auditlog.WithActor(t.Context(), "Ann")
	for id, c := range map[int64]struct {
		action string
		remove func(id int64) error
	}{
		list[0].DeadLetterID: {"dead_letter.discard", func(id int64) error { return deadletter.Discard(ctx, db, id) }},
		list[1].DeadLetterID: {"dead_letter.retry", func(id int64) error {
			return db.InTx(ctx, func(tx *gorm.DB) error { return deadletter.Retried(tx, id, "done", database.Now()) })
		}},
	} {
		if err := c.remove(id); err != nil {
			t.Errorf("%s: %v", c.action, err)
		}
		if err := c.remove(id); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("%s again: %v", c.action, err)
		}
		if _, err := deadletter.Read(db.Read(ctx), id); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("read after %s: %v", c.action, err)
		}
		var lines int64
		err := db.Read(ctx).Raw("SELECT COUNT(*) FROM audit_log WHERE actor = 'Ann' AND action = ?", c.action).Scan(&lines).Error
		if err != nil || lines != 1 {
			t.Errorf("%s: %d lines in the audit log, %v", c.action, lines, err)
		}
	}
}
