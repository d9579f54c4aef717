package promotion

import (
	"fmt"
	"time"

	"gorm.io/gorm"
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
// but one with a Source is kept, since it may have been answered already; it is decided by the state and window of when it was
// asked, and takes the units that were leased to its bucket where the books have them there. now is the decision's time.
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
		left, err := lockQuota(tx, promotionID)
		if err != nil {
			return nil, err
		}
		made = decide(p, facts, asks, left, now)
		if err := moveLockedQuota(tx, promotionID, made.quota); err != nil {
			return nil, err
		}
	}
	return made.claims, made.write(tx)
}
