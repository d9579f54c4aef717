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

// UserCounts reads each person's count that is above 0, ascending by person.
func UserCounts(tx *gorm.DB, promotionID int64) (list []UserCount, err error) {
	rows, err := tx.Raw("SELECT user_id, taken FROM promotion_users WHERE promotion_id = ? AND taken > 0 ORDER BY user_id", promotionID).Rows()
	if err != nil {
		return nil, fmt.Errorf("read the person counters of promotion %d: %w", promotionID, err)
	}
	err = eachRow(rows, func() error {
		var c UserCount
		err := rows.Scan(&c.UserID, &c.Taken)
		list = append(list, c)
		return err
	})
	return list, err
}

// RecentClaims reads the promotion's claims that were minted since a time, those that were refused too, ascending by id. Only of
// these can the token still make a claim.
func RecentClaims(tx *gorm.DB, promotionID int64, since time.Time) ([]Claim, error) {
	return readClaims(tx, "WHERE claim_id >= ? AND promotion_id = ? ORDER BY claim_id", database.FirstID(since), promotionID)
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
