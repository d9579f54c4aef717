package claims_test

import (
	"errors"
	"sync"
	"testing"

	"doortab/claims"
	"doortab/database/databasetest"
	"doortab/deadletter"
	"doortab/promotion"
	"doortab/services/servicestest"
)

// The database refuses what Redis gave to one person: the others get theirs, and theirs is kept until somebody retries it.
func TestAClaimThatCannotBeWrittenBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 2)
	p := f.live(20, 1)
	f.exec(`CREATE TRIGGER refuse_13 BEFORE INSERT ON claims FOR EACH ROW BEGIN
		IF NEW.user_id = 13 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not for 13'; END IF; END`)
	var pressing sync.WaitGroup
	var unlucky promotion.Claim
	for user := int64(10); user < 20; user++ {
		pressing.Go(func() {
			c, err := f.Claim(t.Context(), f.request(p, user, 1))
			switch {
			case err != nil:
				t.Errorf("user %d: %v", user, err)
			case user == 13:
				unlucky = c
			case c.State != promotion.Held:
				t.Errorf("user %d: %+v", user, c)
			}
		})
	}
	pressing.Wait()
	if unlucky.State != promotion.Pending || unlucky.ClaimID == 0 {
		t.Fatalf("the one that can't be written: %+v", unlucky)
	}
	_, err := f.GiveBack(t.Context(), unlucky.ClaimID, func(c promotion.Claim) bool { return c.App == "shopper" })
	refusedAs(t, err, claims.ErrPending)
	_, err = f.GiveBack(t.Context(), unlucky.ClaimID, func(c promotion.Claim) bool { return c.App == "another" })
	refusedAs(t, err, promotion.ErrNoClaim)
	if c, err := f.Read(t.Context(), unlucky.ClaimID); err != nil || c.State != promotion.Pending || c.App != "shopper" {
		t.Errorf("asked for meanwhile: %+v, %v", c, err)
	}
	if n := f.number("SELECT COUNT(*) FROM dead_letters WHERE reason = ?", claims.LetterWriteBack); n != 1 {
		t.Fatalf("%d dead letters", n)
	}
	id := f.number("SELECT dead_letter_id FROM dead_letters")
	if _, err := f.RetryDeadLetter(t.Context(), id); err == nil {
		t.Error("retried while the database refuses it")
	}
	f.exec("DROP TRIGGER refuse_13")
	c, err := f.RetryDeadLetter(t.Context(), id)
	if err != nil || c.ClaimID != unlucky.ClaimID || c.State != promotion.Held {
		t.Errorf("retried: %+v, %v", c, err)
	}
	if c, err := f.Read(t.Context(), unlucky.ClaimID); err != nil || c.State != promotion.Held {
		t.Errorf("asked for then: %+v, %v", c, err)
	}
	if n := f.number("SELECT COUNT(*) FROM dead_letters"); n != 0 {
		t.Errorf("%d dead letters are left", n)
	}
	if _, err := f.RetryDeadLetter(t.Context(), id); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("retried twice: %v", err)
	}
	f.settled(p)
	f.checkBooks(p)
	f.checkRedis(p)
}

// What lies in a stream and is no claim must not hold up the others.
func TestAnEntryThatIsNoClaimBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 1)
	p := f.live(20, 1)
	f.open(p)
	for _, text := range []string{"", "1 2 3", "1 2 3 short", "x 2 3 0123456789abcdef17 app"} {
		f.must(f.client.XAdd(t.Context(), xadd(f.bucketKey(p, 1, 0)+"stream", text)).Err())
	}
	if c, err := f.Claim(t.Context(), f.request(p, 1, 1)); err != nil || c.State != promotion.Held {
		t.Errorf("%+v, %v", c, err)
	}
	f.settled(p)
	if n := f.number("SELECT COUNT(*) FROM dead_letters WHERE reason = ?", claims.LetterWriteBack); n != 4 {
		t.Errorf("%d dead letters", n)
	}
	id := f.number("SELECT MIN(dead_letter_id) FROM dead_letters")
	if _, err := f.RetryDeadLetter(t.Context(), id); !errors.Is(err, claims.ErrUnreadable) {
		t.Errorf("retried: %v", err)
	}
	f.checkRedis(p)
}

// The answer to the COMMIT of a retry is lost: it was done, and whoever asked hears so.
func TestALostAnswerToTheCommitOfARetryIsNoFailure(t *testing.T) {
	t.Parallel()
	f := newFast(t, servicestest.Redis(t).URL(), 1)
	p := f.live(20, 1)
	f.exec("CREATE TRIGGER refuse BEFORE INSERT ON claims FOR EACH ROW SIGNAL SQLSTATE '45000'")
	pending, err := f.Claim(t.Context(), f.request(p, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	f.exec("DROP TRIGGER refuse")
	proxy, dsn := throughForgetful(t, f.dsn)
	service := serve(t, databasetest.Open(t, dsn))
	proxy.lose.Store(1)
	c, err := service.RetryDeadLetter(t.Context(), f.number("SELECT dead_letter_id FROM dead_letters"))
	if err != nil || c.ClaimID != pending.ClaimID || c.State != promotion.Held || proxy.lost.Load() != 1 {
		t.Errorf("%+v, %v, after %d lost answers", c, err, proxy.lost.Load())
	}
	if n := f.number("SELECT COUNT(*) FROM audit_log WHERE action = 'dead_letter.retry'"); n != 1 {
		t.Errorf("%d lines in the audit log", n)
	}
	f.settled(p)
	f.checkBooks(p)
}
