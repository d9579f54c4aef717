package claims

import (
	"testing"

	"doortab/promotion"
)

// Two processes may mint one id in one millisecond: the entry of the other one's sale says nothing of this one's.
func TestAnEntryAnswersTheSaleOfItsToken(t *testing.T) {
	t.Parallel()
	c := &counters{sold: map[int64][]*sale{}}
	ours := promotion.Ask{ClaimID: 7, UserID: 1, TokenID: promotion.TokenID{1}}
	theirs := promotion.Ask{ClaimID: 7, UserID: 2, TokenID: promotion.TokenID{2}}
	s := c.await(ours, nil)
	c.written(theirs, promotion.Claim{ClaimID: 7, UserID: 2})
	if s.ended {
		t.Errorf("a sale of user 1 was answered with the claim of user %d", s.claim.UserID)
	}
	c.written(ours, promotion.Claim{ClaimID: 8, UserID: 1})
	if !s.ended || s.claim.ClaimID != 8 || len(c.sold) != 0 {
		t.Errorf("its own entry: ended %t with claim %d, %d wait", s.ended, s.claim.ClaimID, len(c.sold))
	}
}
