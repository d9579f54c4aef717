package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// GiveBack ends a claim that its caller has read and found held, as returned or expired, and gives what it has left back to the
// quota and its person. One compare-and-set on the claim decides who wins: [database.ErrConflict] where a door, the sweep or
// another caller was first, so that the caller's transaction runs again and reads afresh.
func GiveBack(tx *gorm.DB, c Claim, to ClaimState, now time.Time) (Claim, error) {
	if err := giveBack(tx, c.PromotionID, []Claim{c}, to, now); err != nil {
		return Claim{}, err
	}
	c.State = to
	return c, nil
}

// giveBack is [GiveBack] for held claims of one promotion.
func giveBack(tx *gorm.DB, promotionID int64, claims []Claim, to ClaimState, now time.Time) error {
	var units int64
	userIDs, counted := make([]int64, len(claims)), make(map[int64]int64, len(claims))
	for i, c := range claims {
		units += c.Unused
		userIDs[i] = c.UserID
		counted[c.UserID] -= c.Unused
	}
	users, err := readUsers(tx, promotionID, userIDs)
	if err != nil {
		return err
	}
	if met, err := moveQuota(tx, promotionID, -units); err != nil {
		return err
	} else if !met {
		return fmt.Errorf("give %d units back to promotion %d, which has fewer taken: %w", units, promotionID, database.ErrConflict)
	}
	if err := countUsers(tx, promotionID, users, counted); err != nil {
		return err
	}
	return endClaims(tx, claims, to, now)
}

func endClaims(tx *gorm.DB, claims []Claim, to ClaimState, now time.Time) error {
	claims = slices.SortedFunc(slices.Values(claims), func(a, b Claim) int { return cmp.Compare(a.ClaimID, b.ClaimID) })
	rows := make([][]any, len(claims))
	for i, c := range claims {
		rows[i] = []any{c.ClaimID, string(Held), c.Unused, string(to), now}
	}
	return database.UpdateAll(tx, "claims",
		[]database.Column{database.Int("claim_id"), database.Code("state"), database.Int("left_quantity")},
		[]database.Column{database.Code("state"), database.Time("updated_at")}, rows)
}
