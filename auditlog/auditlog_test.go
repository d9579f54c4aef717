package auditlog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
	"doortab/database/databasetest"
)

type line struct {
	Actor, Action, Target string
	Before, After         *string
	CreatedAt             time.Time
}

func read(t *testing.T, db *database.DB) []line {
	t.Helper()
	var list []line
	err := db.Read(t.Context()).Raw("SELECT actor, action, target, before_change AS `before`, after_change AS `after`, " +
		"created_at FROM audit_log ORDER BY entry_id").Scan(&list).Error
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestALineTellsWhoDidWhat(t *testing.T) {
	t.Parallel()
	db, now := databasetest.New(t), database.Now()
	ctx := auditlog.WithActor(t.Context(), "token:7")
	err := db.InTx(ctx, func(tx *gorm.DB) error {
		return auditlog.Write(tx, auditlog.Entry{
			Action: "lane.put", Target: "cabinet 7", Before: map[string]int{"lane": 1}, After: []string{"水"},
		}, now)
	})
	if err != nil {
		t.Fatal(err)
	}
	later := now.Add(time.Second)
	err = db.InTx(t.Context(), func(tx *gorm.DB) error {
		return auditlog.Write(tx, auditlog.Entry{Action: "lane.clear", Target: "cabinet 7"}, later)
	})
	if err != nil {
		t.Fatal(err)
	}
	before, after := `{"lane":1}`, `["水"]`
	want := []line{{"token:7", "lane.put", "cabinet 7", &before, &after, now}, {"doortab", "lane.clear", "cabinet 7", nil, nil, later}}
	if diff := cmp.Diff(want, read(t, db)); diff != "" {
		t.Error(diff)
	}
}

func TestAChangeThatFailsLeavesNoLine(t *testing.T) {
	t.Parallel()
	db, failed := databasetest.New(t), errors.New("failed")
	err := db.InTx(t.Context(), func(tx *gorm.DB) error {
		if err := auditlog.Write(tx, auditlog.Entry{Action: "a", Target: "b"}, database.Now()); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) || len(read(t, db)) != 0 {
		t.Errorf("%v, lines %v", err, read(t, db))
	}
}

func TestThousandsOfLinesOfOneMoment(t *testing.T) {
	t.Parallel()
	db, attempts := databasetest.New(t), 0
	entries := make([]auditlog.Entry, 10_000)
	for i := range entries {
		entries[i] = auditlog.Entry{Action: "a", Target: fmt.Sprint("product ", i)}
	}
	err := db.InTxCounted(t.Context(), func(tx *gorm.DB, attempt int) error {
		attempts = attempt
		return auditlog.WriteAll(tx, entries, database.Now())
	})
	if err != nil || attempts != 1 || len(read(t, db)) != len(entries) {
		t.Errorf("%v, %d attempts, %d lines", err, attempts, len(read(t, db)))
	}
}

// The log is append-only: no code of the product changes or removes a line.
func TestNothingChangesALine(t *testing.T) {
	t.Parallel()
	changing := regexp.MustCompile(`(?is)\b(UPDATE|DELETE\s+FROM|REPLACE\s+INTO|TRUNCATE(\s+TABLE)?)\s+audit_log`)
	files := 0
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		if found := changing.Find(text); found != nil && !strings.HasSuffix(path, "_test.go") {
			t.Errorf("%s has %q", path, found)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
}
