package promotion

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// Write writes quotas, then persons, then claims, then uses. It returns [database.ErrConflict] where what was decided on is no
// longer so: somebody else took the last units, counted for the person, or used, returned or expired a claim.
func (d *Doors) Write(tx *gorm.DB, now time.Time) error {
	promotions := slices.Sorted(maps.Keys(d.accounts))
	for _, id := range promotions {
		if err := d.accounts[id].moveQuota(tx, id); err != nil {
			return err
		}
	}
	for _, id := range promotions {
		if err := countUsers(tx, id, d.accounts[id].users, d.accounts[id].counted); err != nil {
			return err
		}
	}
	if err := d.writePledges(tx, now); err != nil {
		return err
	}
	return d.writeUses(tx, now)
}

func (a *account) moveQuota(tx *gorm.DB, promotionID int64) error {
	met, err := moveQuota(tx, promotionID, a.moved)
	switch {
	case err != nil || met:
		return err
	case a.moved < 0:
		return wrongQuota(promotionID, a.moved)
	default:
		return fmt.Errorf("take %d units of promotion %d: %w", a.moved, promotionID, database.ErrConflict)
	}
}

// writePledges decides, for each claim, between its use and its return or expiry: whoever finds it held, with what it had left.
func (d *Doors) writePledges(tx *gorm.DB, now time.Time) error {
	used := map[int64]*pledge{}
	for _, list := range d.pledges {
		for _, c := range list {
			if c.left != c.before {
				used[c.claimID] = c
			}
		}
	}
	rows := make([][]any, 0, len(used))
	for _, id := range slices.Sorted(maps.Keys(used)) {
		c, state := used[id], Held
		if c.left == 0 {
			state = Used
		}
		rows = append(rows, []any{id, c.before, string(Held), c.left, string(state), now})
	}
	return database.UpdateAll(tx, "claims",
		[]database.Column{database.Int("claim_id"), database.Int("left_quantity"), database.Code("state")},
		[]database.Column{database.Int("left_quantity"), database.Code("state"), database.Time("updated_at")}, rows)
}
