package reservation

import (
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

// TestPickUpAtTheSecondOfExpiry: a thousand times a reservation is picked up while it expires, and while it is given back;
// one of them has the unit.
func TestPickUpAtTheSecondOfExpiry(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.stock(1001, 7, 2000)
	by := Shopper{1001, 42}
	wins := map[State]int{}
	for n := range 1000 {
		made := s.reserve(ask(1001, 42, 7, 1))
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := s.pickUp(by, 7, 1); err != nil {
				t.Errorf("pick-up: %v", err)
			}
		})
		if n%4 == 0 {
			wait.Go(func() {
				if err := s.giveBack(made.ReservationID, ""); err != nil && !errors.Is(err, ErrOver) {
					t.Errorf("return: %v", err)
				}
			})
		}
		wait.Go(func() {
			s.inTx(func(tx *gorm.DB) error {
				_, err := end(tx, []Key{{1001, made.ReservationID}}, Expired, database.Now())
				return err
			})
		})
		wait.Wait()
		var state State
		if err := s.db.Read(t.Context()).Raw("SELECT state FROM reservations WHERE reservation_id = ?", made.ReservationID).Scan(&state).Error; err != nil {
			t.Fatal(err)
		}
		wins[state]++
		if reserved := s.reserved(1001, 7); reserved != 0 {
			t.Fatalf("round %d: %d still reserved after %s", n, reserved, state)
		}
	}
	if wins[Used] == 0 || wins[Expired] == 0 || wins[Used]+wins[Expired]+wins[Returned] != 1000 {
		t.Errorf("winners %v", wins)
	}
	s.balanced()
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
