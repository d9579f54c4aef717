package promotion

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"doortab/database"
)

// UserCount is how many units of a promotion a person holds or has used.
type UserCount struct {
	UserID int64
	Taken  int64
}

// UserCounts gives each person's count that is above 0, ascending by person.
func UserCounts(tx *gorm.DB, promotionID int64, each func(UserCount) error) error {
	rows, err := tx.Raw("SELECT user_id, taken FROM promotion_users WHERE promotion_id = ? AND taken > 0 ORDER BY user_id", promotionID).Rows()
	if err != nil {
		return fmt.Errorf("read the person counters of promotion %d: %w", promotionID, err)
	}
	return eachRow(rows, func() error {
		var c UserCount
		if err := rows.Scan(&c.UserID, &c.Taken); err != nil {
			return err
		}
		return each(c)
	})
}

// RecentClaims gives the promotion's claims that were minted since a time, those that were refused too, ascending by id. Only of
// these can the token still make a claim.
func RecentClaims(tx *gorm.DB, promotionID int64, since time.Time, each func(Claim) error) error {
	found, err := readClaims(tx, "WHERE claim_id >= ? AND promotion_id = ? ORDER BY claim_id", database.FirstID(since), promotionID)
	if err != nil {
		return err
	}
	for _, c := range found {
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

// ReadByTokens reads the claims that order tokens made; a token that made none is missing. tx may be a plain read.
func ReadByTokens(tx *gorm.DB, promotionID int64, tokens []TokenID) (map[TokenID]Claim, error) {
	found := &facts{byToken: make(map[TokenID]Claim, len(tokens))}
	asks := make([]Ask, len(tokens))
	for i, token := range tokens {
		asks[i].TokenID = token
	}
	return found.byToken, found.readTokens(tx, Promotion{PromotionID: promotionID}, asks)
}
