package reconcile_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
	"doortab/reconcile"
)

// enough is far more than it takes a slow machine to make 500 claims.
const enough = time.Minute

// While claims are made, returned and used, each run finds nothing.
func TestNothingIsFoundWhileClaimsAreInFlight(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	direct, leased := s.live(1_000_000, promotion.Database), s.live(1_000_000, promotion.Redis)
	epoch := s.epoch(leased, 400_000)
	var over atomic.Bool
	var claims, users atomic.Int64
	var shopping sync.WaitGroup
	for worker := range 4 {
		shopping.Go(func() {
			for stream := int64(1); !over.Load(); stream++ {
				id, source := direct, (*promotion.Source)(nil)
				if worker%2 == 1 {
					id, source = leased, &promotion.Source{Epoch: epoch, Bucket: worker / 2, StreamMS: 1, StreamNo: stream}
				}
				group := make([]promotion.Ask, 5)
				for i := range group {
					group[i] = promotion.Ask{UserID: 1 + users.Add(1), Quantity: 2, At: database.Now(), Source: source}
					group[i].TokenID = token(group[i].UserID, 1)
					if source != nil {
						group[i].ClaimID = group[i].UserID
					}
				}
				made := s.shopping(id, group)
				s.giveBack(made[0])
				s.sell(made[1], 1)
				s.sell(made[2], 2)
				claims.Add(int64(len(made)))
			}
		})
	}
	service, runs := s.service(), 0
	for limit := time.Now().Add(enough); (runs < 10 || claims.Load() < 500) && time.Now().Before(limit); runs++ {
		if standing, _ := s.run(service, runs%2 == 1); len(standing) > 0 {
			t.Errorf("run %d finds %q", runs, standing)
			break
		}
	}
	over.Store(true)
	shopping.Wait()
	t.Logf("%d claims, %d runs", claims.Load(), runs)
	if runs < 2 || claims.Load() < 500 {
		t.Errorf("%d claims and %d runs prove nothing", claims.Load(), runs)
	}
}

// shopping takes a group of claims, all of which are given.
func (s *shop) shopping(promotionID int64, group []promotion.Ask) (claims []promotion.Claim) {
	err := s.db.InTx(s.Context(), func(tx *gorm.DB) (err error) {
		claims, err = promotion.Take(tx, promotionID, group, database.Now())
		return err
	})
	if err != nil {
		s.Error(err)
	}
	return claims
}

func (s *shop) giveBack(c promotion.Claim) {
	err := s.db.InTx(s.Context(), func(tx *gorm.DB) error {
		_, err := promotion.GiveBack(tx, c, promotion.Returned, database.Now())
		return err
	})
	if err != nil {
		s.Error(err)
	}
}

func TestOfTwoProcessesOneReconciles(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.live(10, promotion.Database)
	conn, err := s.db.SQL().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "DO GET_LOCK("+database.LockName("reconcile-")+", 0)"); err != nil {
		t.Fatal(err)
	}
	_, err = s.service().Run(t.Context(), reconcile.Options{Origin: reconcile.Command})
	if !errors.Is(err, reconcile.ErrBusy) {
		t.Errorf("while another process reconciles: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), "DO RELEASE_ALL_LOCKS()"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.service().Run(t.Context(), reconcile.Options{Origin: reconcile.Command}); err != nil {
		t.Errorf("when it has ended: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// A process that dies leaves its run, which the next process ends.
func TestARunOfAProcessThatDied(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	wrong := s.live(10, promotion.Database)
	s.exec("UPDATE promotion_quota SET taken = 3 WHERE promotion_id = ?", wrong)
	last := s.live(10, promotion.Database)
	s.define("CREATE TRIGGER broken BEFORE INSERT ON reconciliation_findings FOR EACH ROW BEGIN IF NEW.promotion_id = " +
		"(SELECT MAX(promotion_id) FROM promotions) THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the end'; END IF; END")
	s.exec("UPDATE promotion_quota SET taken = 3 WHERE promotion_id = ?", last)
	service := s.service()
	broken, err := service.Run(t.Context(), reconcile.Options{Origin: reconcile.Command, Everything: true})
	if err == nil || broken.State != reconcile.Failed || broken.Detail == "" {
		t.Fatalf("a run whose second difference can't be written: %+v, %v", broken, err)
	}
	if kept, err := reconcile.ReadDifferences(t.Context(), s.db, broken.RunID, 10); err != nil || len(kept) != 1 {
		t.Errorf("%d differences are kept (%v), not the one before it broke", len(kept), err)
	}
	s.exec("UPDATE reconciliations SET state = 'running', ended_at = NULL WHERE run_id = ?", broken.RunID) // as a kill leaves it
	s.define("DROP TRIGGER broken")
	if standing, _ := s.run(service, false); len(standing) != 2 {
		t.Errorf("the next run finds %q", standing)
	}
	dead, err := reconcile.ReadRun(t.Context(), s.db, broken.RunID)
	if err != nil || dead.State != reconcile.Failed || dead.EndedAt == nil {
		t.Errorf("the dead run is %+v (%v)", dead, err)
	}
}
