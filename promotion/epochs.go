package promotion

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// ErrEpochOver says that an epoch isn't the one that gives units any more: another has begun, or the promotion gives none.
var ErrEpochOver = errors.New("epoch is over")

// EpochState says how far one life of a promotion's counters in Redis is.
type EpochState string

// The states. Only an open epoch holds leases.
const (
	EpochWarming  EpochState = "warming"  // its counters are being loaded
	EpochOpen     EpochState = "open"     // its buckets give units
	EpochDraining EpochState = "draining" // its leases went back; its streams may still hold claims
	EpochDone     EpochState = "done"
)

// Epoch is one life of a promotion's counters in Redis. The numbers of a promotion's epochs begin at 1 and rise.
type Epoch struct {
	PromotionID int64
	Epoch       int64
	State       EpochState
	Buckets     int
	CreatedAt   time.Time
}

const selectedEpoch = "SELECT promotion_id, epoch, state, buckets, created_at FROM promotion_epochs "

// CurrentEpoch reads the epoch that is warming or open; its number is 0 where there is none.
func CurrentEpoch(tx *gorm.DB, promotionID int64) (Epoch, error) {
	var found []Epoch
	err := tx.Raw(selectedEpoch+"WHERE promotion_id = ? AND state IN ('warming', 'open') ORDER BY epoch DESC LIMIT 1", promotionID).
		Scan(&found).Error
	if err != nil {
		return Epoch{}, fmt.Errorf("read the epoch of promotion %d: %w", promotionID, err)
	}
	if len(found) == 0 {
		return Epoch{}, nil
	}
	return found[0], nil
}

// UnfinishedEpochs reads every epoch that isn't done, in the order of promotions.
func UnfinishedEpochs(tx *gorm.DB) ([]Epoch, error) {
	var found []Epoch
	err := tx.Raw(selectedEpoch + "WHERE state IN ('warming', 'open', 'draining') ORDER BY promotion_id, epoch").Scan(&found).Error
	if err != nil {
		return nil, fmt.Errorf("read the epochs that aren't done: %w", err)
	}
	return found, nil
}

// Cold reads the promotions of the Redis way that have no open epoch, also where one is warming, whose process may have died:
// those that are warming, and live ones that have begun or begin within some time.
func Cold(tx *gorm.DB, now time.Time, ahead time.Duration) (found []Promotion, err error) {
	err = tx.Raw(selected+` WHERE p.state IN ('warming', 'live') AND p.ends_at > ? AND (p.state = 'warming' OR p.starts_at <= ?)
		AND p.way = 'redis' AND p.needs_claim AND NOT EXISTS (
		SELECT 1 FROM promotion_epochs e WHERE e.promotion_id = p.promotion_id AND e.state = 'open')`,
		now, now.Add(ahead)).Scan(&found).Error
	if err != nil {
		return nil, fmt.Errorf("look for promotions without an epoch: %w", err)
	}
	return found, nil
}

// BeginEpoch ends the promotion's epoch up to number after and begins the next one, which is warming, with buckets that hold
// nothing. Where there is one beyond after already, it returns that with begun false. It returns [ErrEpochOver] for a promotion
// that is neither warming nor live.
func BeginEpoch(tx *gorm.DB, promotionID, after int64, buckets int, now time.Time) (_ Epoch, begun bool, err error) {
	if _, err := lockQuota(tx, promotionID); err != nil {
		return Epoch{}, false, err
	}
	current, err := CurrentEpoch(tx, promotionID)
	if err != nil || current.Epoch > after {
		return current, false, err
	}
	switch p, err := Read(tx, promotionID); {
	case err != nil:
		return Epoch{}, false, err
	case p.State != Warming && p.State != Live:
		return Epoch{}, false, fmt.Errorf("begin an epoch of promotion %d, which is %s: %w", promotionID, p.State, ErrEpochOver)
	}
	if current.Epoch != 0 {
		if _, err := endEpoch(tx, promotionID, current.Epoch); err != nil {
			return Epoch{}, false, err
		}
	}
	var last int64
	err = tx.Raw("SELECT COALESCE(MAX(epoch), 0) FROM promotion_epochs WHERE promotion_id = ?", promotionID).Scan(&last).Error
	if err != nil {
		return Epoch{}, false, fmt.Errorf("read the last epoch of promotion %d: %w", promotionID, err)
	}
	next := Epoch{promotionID, last + 1, EpochWarming, buckets, now}
	return next, true, next.insert(tx)
}

func (e Epoch) insert(tx *gorm.DB) error {
	err := database.Insert(tx, "promotion_epochs", []string{"promotion_id", "epoch", "state", "buckets", "created_at"},
		[][]any{{e.PromotionID, e.Epoch, string(e.State), e.Buckets, e.CreatedAt}}, "")
	if err != nil {
		return fmt.Errorf("begin epoch %d of promotion %d: %w", e.Epoch, e.PromotionID, err)
	}
	rows := make([][]any, e.Buckets)
	for bucket := range rows {
		rows[bucket] = []any{e.PromotionID, e.Epoch, bucket, 0, 0, 0}
	}
	return database.Insert(tx, "promotion_buckets", []string{"promotion_id", "epoch", "bucket", "granted", "revoked", "written"}, rows, "")
}

// OpenEpoch lets a warming epoch give units, or returns [ErrEpochOver] where somebody ended it meanwhile.
func OpenEpoch(tx *gorm.DB, promotionID, epoch int64) error {
	changed, err := moveEpoch(tx, promotionID, epoch, EpochOpen, "'warming'")
	if err == nil && !changed {
		return fmt.Errorf("open epoch %d of promotion %d: %w", epoch, promotionID, ErrEpochOver)
	}
	return err
}

// EndEpoch gives what an epoch's leases have left back to the quota, and leaves its streams to be drained. It reports false
// where the epoch gave no units any more.
func EndEpoch(tx *gorm.DB, promotionID, epoch int64) (ended bool, err error) {
	if _, err := lockQuota(tx, promotionID); err != nil {
		return false, err
	}
	return endEpoch(tx, promotionID, epoch)
}

// EndEpochs ends whatever epoch of the promotion gives units.
func EndEpochs(tx *gorm.DB, promotionID int64) error {
	if _, err := lockQuota(tx, promotionID); err != nil {
		return err
	}
	current, err := CurrentEpoch(tx, promotionID)
	if err != nil || current.Epoch == 0 {
		return err
	}
	_, err = endEpoch(tx, promotionID, current.Epoch)
	return err
}

// FinishEpoch notes that nothing of a draining epoch is left in Redis.
func FinishEpoch(tx *gorm.DB, promotionID, epoch int64) error {
	_, err := moveEpoch(tx, promotionID, epoch, EpochDone, "'draining'")
	return err
}

func moveEpoch(tx *gorm.DB, promotionID, epoch int64, to EpochState, from string) (changed bool, err error) {
	result := tx.Exec("UPDATE promotion_epochs SET state = ? WHERE promotion_id = ? AND epoch = ? AND state IN ("+from+")",
		string(to), promotionID, epoch)
	if result.Error != nil {
		return false, fmt.Errorf("make epoch %d of promotion %d %s: %w", epoch, promotionID, to, result.Error)
	}
	return result.RowsAffected == 1, nil
}

func endEpoch(tx *gorm.DB, promotionID, epoch int64) (ended bool, err error) {
	if ended, err := moveEpoch(tx, promotionID, epoch, EpochDraining, "'warming', 'open'"); err != nil || !ended {
		return false, err
	}
	buckets, err := lockBuckets(tx, promotionID, epoch)
	if err != nil {
		return false, err
	}
	var rest int64
	for _, b := range buckets {
		rest += b.Left()
	}
	if rest == 0 {
		return true, nil
	}
	err = tx.Exec("UPDATE promotion_buckets SET revoked = granted - written WHERE promotion_id = ? AND epoch = ?", promotionID, epoch).Error
	if err != nil {
		return false, fmt.Errorf("revoke the leases of epoch %d of promotion %d: %w", epoch, promotionID, err)
	}
	return true, moveLockedQuota(tx, promotionID, -rest)
}
