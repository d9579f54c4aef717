package reservation

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"doortab/database"
)

// TestManyAtTheLastUnits: of many who press at once, as many get a unit as there are.
func TestManyAtTheLastUnits(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 25, 8, 40)
	var got, refused atomic.Int64
	var wait sync.WaitGroup
	for user := range int64(12) {
		wait.Go(func() {
			for i := range int64(10) {
				lines := []int64{7, 1, 8, 1}
				if i%2 == 1 {
					lines = []int64{8, 1, 7, 1}
				}
				switch _, err := s.try(ask(1001, user+1, lines...)); {
				case err == nil:
					got.Add(1)
				case errors.Is(err, ErrTooLittle):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if got.Load() != 25 || refused.Load() != 95 || s.reserved(1001, 7) != 25 || s.reserved(1001, 8) != 25 {
		t.Errorf("%d reserved, %d refused, rows say %d and %d", got.Load(), refused.Load(), s.reserved(1001, 7), s.reserved(1001, 8))
	}
	s.balanced()
}

// TestReservationsAgainstSales: a unit is either reserved or sold, or the sale says that it took what others had reserved.
func TestReservationsAgainstSales(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 60)
	var reserved, sold, told atomic.Int64
	var wait sync.WaitGroup
	for worker := range int64(4) {
		wait.Go(func() {
			for range 20 {
				if _, err := s.try(ask(1001, worker+1, 7, 1)); err == nil {
					reserved.Add(1)
				} else if !errors.Is(err, ErrTooLittle) {
					t.Error(err)
				}
			}
		})
		wait.Go(func() {
			for range 10 {
				lack, err := s.pickUp(Shopper{1001, 100 + worker}, 7, 1)
				for database.ClassOf(err) == database.Retry { // several sales at once, without the lock that the fourth attempt takes
					lack, err = s.pickUp(Shopper{1001, 100 + worker}, 7, 1)
				}
				if err != nil {
					t.Error(err)
				}
				sold.Add(1)
				if lack {
					told.Add(1)
				}
			}
		})
	}
	wait.Wait()
	short := max(reserved.Load()+sold.Load()-60, 0)
	if short != told.Load() || s.reserved(1001, 7) != reserved.Load() {
		t.Errorf("%d reserved and %d sold of 60; %d sales say that they took what others had reserved", reserved.Load(), sold.Load(), told.Load())
	}
	s.balanced()
}

// TestPickUpAtTheSecondOfExpiry: a thousand times a reservation is picked up while it expires, and every fourth while it is given
// back too; one of them has the unit.
func TestPickUpAtTheSecondOfExpiry(t *testing.T) {
	t.Parallel()
	const workers, rounds = 4, 250
	s := newShop(t)
	var wins [2]atomic.Int64
	var racing sync.WaitGroup
	for worker := range int64(workers) {
		by := Shopper{2001 + worker, 42}
		s.stock(by.DeviceID, 7, rounds)
		racing.Go(func() {
			for round := range rounds {
				wins[s.race(by, round)].Add(1)
			}
		})
	}
	racing.Wait()
	if used, ended := wins[0].Load(), wins[1].Load(); used+ended != workers*rounds || used == 0 || ended == 0 {
		t.Errorf("%d picked up, %d expired or returned", used, ended)
	}
	s.balanced()
}

// race tells whether a reservation was picked up, 0, or expired or was returned, 1.
func (s *shop) race(by Shopper, round int) (winner int) {
	made := s.reserve(ask(by.DeviceID, by.UserID, 7, 1))
	contest := []func(*gorm.DB) error{
		func(tx *gorm.DB) error {
			_, err := pickUp(tx, by, 7, 1)
			return err
		},
		func(tx *gorm.DB) error {
			_, err := end(tx, []Key{{by.DeviceID, made.ReservationID}}, Expired, database.Now())
			return err
		},
	}
	var runners sync.WaitGroup
	run := func(work func(*gorm.DB) error) {
		runners.Go(func() {
			if err := s.db.InTx(context.Background(), work); err != nil && !errors.Is(err, ErrOver) {
				s.t.Error(err)
			}
		})
	}
	if round%4 == 0 {
		run(contest[0])
		run(contest[1])
		run(func(tx *gorm.DB) error { return Return(tx, made.ReservationID, "", database.Now()) })
	} else { // one comes when the other has written and not committed yet
		written := make(chan struct{})
		tell := sync.OnceFunc(func() { close(written) })
		run(func(tx *gorm.DB) error {
			defer tell()
			return contest[round%2](tx)
		})
		<-written
		run(contest[1-round%2])
	}
	runners.Wait()
	if reserved := s.reserved(by.DeviceID, 7); reserved != 0 {
		s.t.Errorf("round %d: %d still reserved", round, reserved)
	}
	return int(s.number("SELECT state <> 'used' FROM reservations WHERE reservation_id = ?", made.ReservationID))
}

// TestPickUpsOfOneReservationAtOnce: several doors take parts of it at the same time.
func TestPickUpsOfOneReservationAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 100, 8, 100, 9, 100)
	for range 20 {
		made := s.reserve(ask(1001, 42, 7, 2, 8, 1, 9, 1))
		var wait sync.WaitGroup
		for _, product := range []int64{7, 8, 9, 7} {
			wait.Go(func() {
				_, err := s.pickUp(Shopper{1001, 42}, product, 1)
				for database.ClassOf(err) == database.Retry {
					_, err = s.pickUp(Shopper{1001, 42}, product, 1)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if got := s.told(made.ReservationID); got != "used, 7: 0 of 2, 8: 0 of 1, 9: 0 of 1" {
			t.Fatal(got)
		}
	}
	s.balanced()
}
