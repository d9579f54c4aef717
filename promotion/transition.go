package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// State says how far a promotion is.
type State string

// The states.
const (
	Draft   State = "draft"   // being prepared
	Warming State = "warming" // its counters are being made ready
	Live    State = "live"    // gives units while its window is open
	Paused  State = "paused"  // gives none for now; claims that are held stay good
	Ended   State = "ended"   // for good; claims that are held stay good
)

var transitions = map[State][]State{
	Draft:   {Warming, Live, Ended},
	Warming: {Live, Ended},
	Live:    {Paused, Ended},
	Paused:  {Live, Ended},
}

// ways tells a user where a state leads.
func ways(from State) string {
	if len(transitions[from]) == 0 {
		return "draft another one"
	}
	names := make([]string, 0, len(transitions[from]))
	for _, to := range transitions[from] {
		names = append(names, string(to))
	}
	return "give " + strings.Join(names, " or ")
}

// Transition changes a promotion's state in the caller's transaction. It returns [ErrNotFound], or [ErrBadTransition] where
// the state that it is in doesn't lead there.
func Transition(tx *gorm.DB, promotionID int64, to State, now time.Time) (Promotion, error) {
	p, err := Read(tx, promotionID)
	if err != nil {
		return Promotion{}, err
	}
	if !slices.Contains(transitions[p.State], to) {
		return Promotion{}, fmt.Errorf("promotion %d is %s and %w %s: %s", promotionID, p.State, ErrBadTransition, to, ways(p.State))
	}
	result := tx.Exec("UPDATE promotions SET state = ?, updated_at = ? WHERE promotion_id = ? AND state = ?", to, now, promotionID, p.State)
	if result.Error != nil {
		return Promotion{}, fmt.Errorf("make promotion %d %s: %w", promotionID, to, result.Error)
	}
	if result.RowsAffected != 1 {
		return Promotion{}, fmt.Errorf("make promotion %d %s: %w", promotionID, to, database.ErrConflict)
	}
	if to == Paused || to == Ended { // units must not lie in buckets that give none
		if err := EndEpochs(tx, promotionID); err != nil {
			return Promotion{}, err
		}
	}
	err = auditlog.Write(tx, auditlog.Entry{
		Action: "promotion.transition", Target: target(promotionID),
		Before: map[string]any{"state": p.State}, After: map[string]any{"state": to},
	}, now)
	if err != nil {
		return Promotion{}, err
	}
	p.State, p.UpdatedAt = to, now
	return p, database.Raise(tx, database.Promotions)
}
