package promotion_test

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/promotion"
)

func (s shop) begin(p promotion.Promotion, after int64, buckets int) (e promotion.Epoch, begun bool) {
	s.Helper()
	err := s.inTx(func(tx *gorm.DB) (err error) {
		e, begun, err = promotion.BeginEpoch(tx, p.PromotionID, after, buckets, database.Now())
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	s.checkBooks(p)
	return e, begun
}

// opened is a live promotion with an open epoch.
func (s shop) opened(quota int64, buckets int) (promotion.Promotion, promotion.Epoch) {
	s.Helper()
	p := s.live(cola(quota, 5))
	e, _ := s.begin(p, 0, buckets)
	if err := s.inTx(func(tx *gorm.DB) error { return promotion.OpenEpoch(tx, p.PromotionID, e.Epoch) }); err != nil {
		s.Fatal(err)
	}
	return p, e
}

func (s shop) lease(p promotion.Promotion, epoch int64, revoked map[int]int64, wants ...promotion.Want) ([]promotion.Bucket, error) {
	s.Helper()
	var buckets []promotion.Bucket
	err := s.inTx(func(tx *gorm.DB) (err error) {
		buckets, err = promotion.Lease(tx, p.PromotionID, epoch, revoked, wants)
		return err
	})
	s.checkBooks(p)
	return buckets, err
}

func TestOneEpochAtATime(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p, first := s.opened(10, 2)
	if again, begun := s.begin(p, 0, 2); begun || again.Epoch != first.Epoch {
		t.Errorf("began %+v beside an epoch that is open", again)
	}
	second, begun := s.begin(p, first.Epoch, 2)
	if !begun || second.Epoch != first.Epoch+1 || second.State != promotion.EpochWarming {
		t.Errorf("after epoch %d: %+v", first.Epoch, second)
	}
	if state := s.text("SELECT state FROM promotion_epochs WHERE promotion_id = ? AND epoch = ?", p.PromotionID, first.Epoch); state != "draining" {
		t.Errorf("the first epoch is %s", state)
	}
	if _, err := s.lease(p, second.Epoch, nil, promotion.Want{Need: 1}); !errors.Is(err, promotion.ErrEpochOver) {
		t.Errorf("a lease of an epoch that isn't open yet: %v", err)
	}
}

func (s shop) text(statement string, args ...any) (text string) {
	s.Helper()
	if err := s.db.Read(s.Context()).Raw(statement, args...).Scan(&text).Error; err != nil {
		s.Fatalf("%s: %v", statement, err)
	}
	return text
}

func TestLeasesComeOutOfTheQuota(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, c := range []struct {
		name    string
		quota   int64
		revoked map[int]int64 // after the first lease of 4 to each of two buckets
		wants   []promotion.Want
		granted []int64
	}{
		{"most while the quota is far from its end", 1000, nil, []promotion.Want{{0, 1, 50}}, []int64{54, 4, 0}},
		{"need where it is near", 10, nil, []promotion.Want{{0, 2, 50}}, []int64{6, 4, 0}},
		{"what is left where need is more", 9, nil, []promotion.Want{{0, 5, 50}}, []int64{5, 4, 0}},
		{"each need before any most", 14, nil, []promotion.Want{{0, 2, 50}, {2, 3, 50}}, []int64{6, 4, 3}},
		{"what others gave back", 8, map[int]int64{0: 3, 1: 2}, []promotion.Want{{2, 5, 5}}, []int64{4, 4, 5}},
		{"never more back than a bucket has", 8, map[int]int64{0: 300}, []promotion.Want{{2, 9, 9}}, []int64{4, 4, 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, e := s.opened(c.quota, 3)
			if _, err := s.lease(p, e.Epoch, nil, promotion.Want{Bucket: 0, Need: 4}, promotion.Want{Bucket: 1, Need: 4}); err != nil {
				t.Fatal(err)
			}
			buckets, err := s.lease(p, e.Epoch, c.revoked, c.wants...)
			if err != nil {
				t.Fatal(err)
			}
			var granted []int64
			for _, b := range buckets {
				granted = append(granted, b.Granted)
			}
			if !slices.Equal(granted, c.granted) {
				t.Errorf("granted %v, not %v", granted, c.granted)
			}
		})
	}
}

func TestAnEpochThatEndsGivesItsLeasesBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p, e := s.opened(10, 2)
	if _, err := s.lease(p, e.Epoch, nil, promotion.Want{Bucket: 0, Need: 4}, promotion.Want{Bucket: 1, Need: 3}); err != nil {
		t.Fatal(err)
	}
	s.take(p, streamed(e, 0, 1, 2))
	for _, want := range []bool{true, false} {
		var ended bool
		if err := s.inTx(func(tx *gorm.DB) (err error) {
			ended, err = promotion.EndEpoch(tx, p.PromotionID, e.Epoch)
			return err
		}); err != nil || ended != want {
			t.Fatalf("ended %v, %v; want %v", ended, err, want)
		}
		s.checkBooks(p)
	}
	if taken := s.number("SELECT taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); taken != 2 {
		t.Errorf("%d taken, want the 2 of the claim", taken)
	}
	s.take(p, streamed(e, 1, 2, 3)) // on its way when the epoch ended: units come from the quota
	if taken := s.number("SELECT taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); taken != 5 {
		t.Errorf("%d taken, want 5", taken)
	}
}

// streamed is an ask of a user that came through a bucket.
func streamed(e promotion.Epoch, bucket int, userID, quantity int64) promotion.Ask {
	a := ask(userID, 1, quantity)
	a.ClaimID = database.NewID(a.At)
	a.Source = &promotion.Source{Epoch: e.Epoch, Bucket: bucket, StreamMS: a.At.UnixMilli(), StreamNo: userID}
	return a
}

func TestAPromotionThatGivesNoUnitsHoldsNoLeases(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, to := range []promotion.State{promotion.Paused, promotion.Ended} {
		t.Run(string(to), func(t *testing.T) {
			p, e := s.opened(10, 2)
			if _, err := s.lease(p, e.Epoch, nil, promotion.Want{Bucket: 1, Need: 3}); err != nil {
				t.Fatal(err)
			}
			s.become(p, to)
			s.checkBooks(p)
			if taken := s.number("SELECT taken FROM promotion_quota WHERE promotion_id = ?", p.PromotionID); taken != 0 {
				t.Errorf("%d taken", taken)
			}
			if _, err := s.lease(p, e.Epoch, nil, promotion.Want{Bucket: 1, Need: 3}); !errors.Is(err, promotion.ErrEpochOver) {
				t.Errorf("a lease after that: %v", err)
			}
			err := s.inTx(func(tx *gorm.DB) error {
				_, _, err := promotion.BeginEpoch(tx, p.PromotionID, e.Epoch, 2, database.Now())
				return err
			})
			if !errors.Is(err, promotion.ErrEpochOver) {
				t.Errorf("an epoch after that: %v", err)
			}
		})
	}
}

// Two processes may mint one id in one millisecond. Each person gets a claim of their own, also where entries are read again.
func TestTwoEntriesWithOneClaimID(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	p, e := s.opened(10, 2)
	if _, err := s.lease(p, e.Epoch, nil, promotion.Want{Bucket: 0, Need: 3}, promotion.Want{Bucket: 1, Need: 3}); err != nil {
		t.Fatal(err)
	}
	one, two, three := streamed(e, 0, 1, 1), streamed(e, 1, 2, 1), streamed(e, 1, 3, 1)
	two.ClaimID, three.ClaimID = one.ClaimID, one.ClaimID
	claims := s.take(p, one, two)
	claims = append(claims, s.take(p, three)...)
	again := s.take(p, three, two, one)
	for n, a := range []promotion.Ask{one, two, three} {
		c := claims[n]
		if c.UserID != a.UserID || c.TokenID != a.TokenID || c.State != promotion.Held || again[2-n].ClaimID != c.ClaimID {
			t.Errorf("user %d has %+v, and read again %+v", a.UserID, c, again[2-n])
		}
	}
	if n := s.number("SELECT COUNT(DISTINCT claim_id) FROM claims WHERE promotion_id = ? AND state = 'held'", p.PromotionID); n != 3 {
		t.Errorf("%d claims", n)
	}
	late := streamed(e, 1, 4, 1) // of a token that a claim of another id has
	late.ClaimID, late.TokenID, late.UserID = two.ClaimID, three.TokenID, three.UserID
	for range 2 {
		if c := s.take(p, late)[0]; c.ClaimID != claims[2].ClaimID {
			t.Errorf("the token again: %+v", c)
		}
	}
}
