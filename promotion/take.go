package promotion

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// Ask asks for units of a promotion. Whoever makes one has verified its token for its person and app.
type Ask struct {
	ClaimID  int64 // as it was promised already; 0: to be minted
	UserID   int64
	TokenID  TokenID
	App      string
	Quantity int64 // 1 to 1000
	At       time.Time
	Source   *Source // nil: asked of the database
}

// Take decides a group of asks of one promotion, in their order, and returns a claim for each: held, the one that its token
// made before, or refused. Nobody is refused while units are left. A refused ask leaves nothing behind and its token unused,
// but one with a Source is kept, since it may have been answered already; it is decided by the state that its script saw, and
// takes the units that were leased to its bucket where the books have them there. now is the decision's time.
//
// Take reads without locks, plans, and writes with guards: [database.ErrConflict] has the caller's transaction run again. It
// returns [ErrInvalid] for a quantity out of range and [ErrNotFound].
func Take(tx *gorm.DB, promotionID int64, asks []Ask, now time.Time) ([]Claim, error) {
	for _, a := range asks {
		if a.Quantity < 1 || a.Quantity > MaxQuantity {
			return nil, fmt.Errorf("quantity %w: give 1 to %d", ErrInvalid, MaxQuantity)
		}
	}
	p, err := Read(tx, promotionID)
	if err != nil {
		return nil, err
	}
	facts, err := readFacts(tx, p, asks)
	if err != nil {
		return nil, err
	}
	made := decide(p, facts, asks, p.Left(), now)
	if met, err := moveQuota(tx, promotionID, made.quota); err != nil {
		return nil, err
	} else if !met { // others took units meanwhile: what is left is decided one by one, with the row held
		left, err := holdQuota(tx, promotionID)
		if err != nil {
			return nil, err
		}
		made = decide(p, facts, asks, left, now)
		if met, err := moveQuota(tx, promotionID, made.quota); err != nil {
			return nil, err
		} else if !met {
			return nil, fmt.Errorf("units of promotion %d: %w", promotionID, database.ErrConflict)
		}
	}
	return made.claims, made.write(tx)
}

// moveQuota takes units from the quota, or gives them back where n is below 0. It tells whether there were that many.
func moveQuota(tx *gorm.DB, promotionID, n int64) (met bool, err error) {
	if n == 0 {
		return true, nil
	}
	result := tx.Exec("UPDATE promotion_quota SET taken = taken + ? WHERE promotion_id = ? AND taken + ? <= quota AND taken + ? >= 0",
		n, promotionID, n, n)
	if result.Error != nil {
		return false, fmt.Errorf("move quota of promotion %d by %d: %w", promotionID, n, result.Error)
	}
	return result.RowsAffected == 1, nil
}

// holdQuota returns the units that nobody has, and keeps others from taking them until the transaction ends.
func holdQuota(tx *gorm.DB, promotionID int64) (left int64, err error) {
	err = tx.Raw("SELECT quota - taken FROM promotion_quota WHERE promotion_id = ? FOR UPDATE", promotionID).Scan(&left).Error
	if err != nil {
		return 0, fmt.Errorf("hold quota of promotion %d: %w", promotionID, err)
	}
	return left, nil
}
