package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"doortab/claims"
	"doortab/database"
	"doortab/promotion"
)

const (
	// settleFor is how long a lease may be on its way between the database and Redis.
	settleFor = time.Second
	// fenceFor is how long the write-back may take up to where the counters were read; longer, and the bucket is behind.
	fenceFor = 10 * time.Second
	// endedBefore is how long before the counters were read a claim may have been given back without them knowing.
	endedBefore = 15 * time.Second
)

// sold is what an open epoch's counters in Redis say, and what the database says of the same claims.
type sold struct {
	epoch   promotion.Epoch
	first   []promotion.Bucket // before the counters were read
	last    []promotion.Bucket // after
	buckets []claims.Snapshot  // those that are behind are not Known
	behind  map[int]bool

	persons map[int64]standing
	rows    map[int64]row // claims that Redis or the epoch's rows speak of, by id
	written map[int]int64 // units of the rows, by bucket
}

// standing is what a person should have in Redis, in units.
type standing struct {
	UserID int64
	Due    int64 // by the claims that the counters can know
	Beyond int64 // of them, by claims that came past the counters, which may not know these
	Ended  int64 // given back, which the counters may not have heard of
}

// row is a claim as its row has it.
type row struct {
	ClaimID, UserID, Quantity int64
	Bucket                    *int // of this epoch; nil: of another, or of the database
}

// readSold reads an open epoch's counters at a position of each stream and the database at the same positions; nil where the
// epoch has ended meanwhile.
func (s *Service) readSold(ctx context.Context, e promotion.Epoch) (*sold, error) {
	x := &sold{epoch: e, behind: map[int]bool{}, buckets: make([]claims.Snapshot, e.Buckets)}
	var err error
	if x.first, err = promotion.Buckets(s.db.Read(ctx), e.PromotionID, e.Epoch); err != nil {
		return nil, err
	}
	if err := wait(ctx, s.settleFor); err != nil {
		return nil, err
	}
	at := database.Now()
	for bucket := range x.buckets {
		if x.buckets[bucket], err = s.redis.Snapshot(ctx, e, bucket); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoRedis, err)
		}
	}
	if err := wait(ctx, s.settleFor); err != nil {
		return nil, err
	}
	if err := s.awaitFences(ctx, x); err != nil {
		return nil, err
	}
	open := false
	err = s.db.Snapshot(ctx, func(tx *gorm.DB) error {
		current, err := promotion.CurrentEpoch(tx, e.PromotionID)
		if err != nil || current.Epoch != e.Epoch {
			return err
		}
		open = true
		return x.readRows(tx, at)
	})
	if err != nil || !open {
		return nil, err
	}
	return x, nil
}

var errNoRedis = errors.New("the counters in Redis can't be read")

// awaitFences waits until what the buckets had sold is written. Buckets whose write-back is behind are left out.
func (s *Service) awaitFences(ctx context.Context, x *sold) error {
	deadline := time.Now().Add(s.fenceFor)
	for bucket := range x.buckets {
		for x.buckets[bucket].Known {
			written, err := s.redis.WrittenUpTo(ctx, x.epoch, bucket, x.buckets[bucket].Fence)
			if err != nil {
				return fmt.Errorf("%w: %w", errNoRedis, err)
			}
			if written {
				break
			}
			if time.Now().After(deadline) {
				x.behind[bucket], x.buckets[bucket].Known = true, false
				break
			}
			if err := wait(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// later is the condition of the epoch's claims c that lie behind the fence of their bucket.
func (x *sold) later() (condition string, args []any) {
	parts := []string{"FALSE"}
	for bucket, b := range x.buckets {
		parts = append(parts, "c.bucket = ? AND (c.stream_ms > ? OR c.stream_ms = ? AND c.stream_no > ?)")
		args = append(args, bucket, b.Fence.MS, b.Fence.MS, b.Fence.No)
	}
	return "c.epoch = ? AND (" + strings.Join(parts, " OR ") + ")", append([]any{x.epoch.Epoch}, args...)
}

// readRows reads what the database has of the claims that the counters can know.
func (x *sold) readRows(tx *gorm.DB, at time.Time) (err error) {
	if x.last, err = promotion.Buckets(tx, x.epoch.PromotionID, x.epoch.Epoch); err != nil {
		return err
	}
	if err := x.readClaims(tx); err != nil {
		return err
	}
	return x.readPersons(tx, at)
}

func (x *sold) readClaims(tx *gorm.DB) error {
	later, args := x.later()
	var list []row
	err := tx.Raw("SELECT c.claim_id, c.user_id, c.quantity, c.bucket FROM claims c WHERE c.promotion_id = ? AND c.epoch = ? AND NOT ("+later+")",
		append([]any{x.epoch.PromotionID, x.epoch.Epoch}, args...)...).Scan(&list).Error
	if err != nil {
		return fmt.Errorf("read the claims of epoch %d of promotion %d: %w", x.epoch.Epoch, x.epoch.PromotionID, err)
	}
	x.rows, x.written = make(map[int64]row, len(list)), map[int]int64{}
	for _, r := range list {
		x.rows[r.ClaimID] = r
		x.written[*r.Bucket] += r.Quantity
	}
	var unknown [][]any
	for _, b := range x.buckets {
		for _, sale := range b.Sales {
			if _, known := x.rows[sale.ClaimID]; !known {
				unknown = append(unknown, []any{sale.ClaimID})
			}
		}
	}
	return x.readOthers(tx, unknown)
}

// readOthers reads claims that the counters were loaded with.
func (x *sold) readOthers(tx *gorm.DB, ids [][]any) (err error) {
	if len(ids) == 0 {
		return nil
	}
	found, err := database.ReadEach(tx, "claims", []database.Column{database.Int("claim_id")},
		[]string{"claim_id", "user_id", "quantity", "promotion_id"}, ids)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var r row
		var promotionID int64
		if err := found.Scan(&r.ClaimID, &r.UserID, &r.Quantity, &promotionID); err != nil {
			return fmt.Errorf("read a claim: %w", err)
		}
		if promotionID == x.epoch.PromotionID {
			x.rows[r.ClaimID] = r
		}
	}
	return found.Err()
}

// readPersons: the counters don't hear of claims that the database gave while the epoch was open, nor of refunds; of a claim that
// was given back or refused late they may not have heard.
func (x *sold) readPersons(tx *gorm.DB, at time.Time) error {
	later, args := x.later()
	since := []any{x.epoch.CreatedAt.Add(-endedBefore), x.epoch.Epoch}
	query := `SELECT user_id, CAST(SUM(due) AS SIGNED) AS due, CAST(SUM(beyond) AS SIGNED) AS beyond, CAST(SUM(ended) AS SIGNED) AS ended FROM (
		SELECT c.user_id, IF(c.state IN ('held', 'used') AND NOT (c.epoch IS NOT NULL AND ` + later + `), c.quantity, 0) AS due,
			IF(c.state IN ('held', 'used') AND c.created_at >= ? AND NOT c.epoch <=> ?, c.quantity, 0) AS beyond,
			IF(c.state = 'refused' AND c.epoch IS NOT NULL OR c.state IN ('returned', 'expired') AND c.updated_at >= ?, c.quantity, 0) AS ended
			FROM claims c WHERE c.promotion_id = ?
		UNION ALL SELECT x.user_id, IF(c.state IN ('held', 'used'), 0, x.quantity) - x.given_back, 0, x.given_back FROM promotion_uses x
			LEFT JOIN claims c ON c.claim_id = x.claim_id AND c.promotion_id = x.promotion_id AND c.user_id = x.user_id
			WHERE x.promotion_id = ?) d GROUP BY user_id`
	all := append(append(append([]any{}, args...), since...), at.Add(-endedBefore), x.epoch.PromotionID, x.epoch.PromotionID)
	var list []standing
	if err := tx.Raw(query, all...).Scan(&list).Error; err != nil {
		return fmt.Errorf("read what persons have of promotion %d: %w", x.epoch.PromotionID, err)
	}
	x.persons = make(map[int64]standing, len(list))
	for _, p := range list {
		x.persons[p.UserID] = p
	}
	return nil
}
