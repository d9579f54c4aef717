package promotion

import (
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
)

// MaxQuantity is the most units that one claim may ask for.
const MaxQuantity = 1000

// ErrNoClaim says that there is no such claim. Its text is fit for a user.
var ErrNoClaim = errors.New("no such claim")

// ErrClaimOver says that a claim is used or expired, so that it can't be given back.
var ErrClaimOver = errors.New("is over")

// Refusal is why a claim was not given, as an error whose text is fit for a user.
type Refusal string

// The refusals.
const (
	SoldOut       Refusal = "sold_out"
	LimitReached  Refusal = "limit_reached"
	TokenUsed     Refusal = "token_used"      // by a claim of another person or quantity
	TokenInvalid  Refusal = "token_invalid"   // not ours, or another person's, promotion's or app's
	TokenExpired  Refusal = "token_expired"   // ours, but too old to make a claim with
	NotLive       Refusal = "not_live"        // in its state or at this time
	NoClaimNeeded Refusal = "no_claim_needed" // it applies at the door
)

var refusals = map[Refusal]string{
	SoldOut:       "the promotion has fewer units left than that: a smaller claim may still get some",
	LimitReached:  "this person would have more units than the promotion gives each person",
	TokenUsed:     "this order token was used for another claim: take a new one",
	TokenInvalid:  "the order token is not one for this person, promotion and app: take a new one",
	TokenExpired:  "the order token has expired: take a new one",
	NotLive:       "the promotion gives no units now: it isn't live, or this is not its time",
	NoClaimNeeded: "the promotion needs no claim: it applies at the door",
}

// Error is the refusal for a user.
func (r Refusal) Error() string {
	if text, known := refusals[r]; known {
		return text
	}
	return "refused: " + string(r)
}

// TokenID is what makes an order token one: 16 random bytes.
type TokenID [16]byte

// Scan reads a column.
func (t *TokenID) Scan(value any) error {
	bytes, ok := value.([]byte)
	if !ok || len(bytes) != len(t) {
		return fmt.Errorf("token id %v is not 16 bytes", value)
	}
	copy(t[:], bytes)
	return nil
}

// Value writes a column.
func (t TokenID) Value() (driver.Value, error) { return t[:], nil }

// String is the id in hex.
func (t TokenID) String() string { return hex.EncodeToString(t[:]) }

// ClaimState says what became of a claim.
type ClaimState string

// The states: held, then one of the others.
const (
	Pending  ClaimState = "pending" // promised by Redis and not written yet; none is kept so
	Held     ClaimState = "held"
	Used     ClaimState = "used" // all of it, at doors
	Returned ClaimState = "returned"
	Expired  ClaimState = "expired"
	Refused  ClaimState = "refused" // after it was answered "pending"; Reason says why
)

// Source tells where a claim came through Redis: the bucket whose leased units it took, and its place in the bucket's stream.
type Source struct {
	Epoch    int64
	Bucket   int
	StreamMS int64
	StreamNo int64
}

// Claim is one claim as it is kept. One that [Take] refused at once is not kept and has no ClaimID.
type Claim struct {
	ClaimID     int64
	PromotionID int64
	UserID      int64
	TokenID     TokenID
	App         string // "" for staff
	Quantity    int64
	Unused      int64 // what no door has used; only those of a held claim are still its person's
	State       ClaimState
	Reason      Refusal // of a refused one
	Source      *Source // nil: taken from the database
	ExpiresAt   time.Time
	CreatedAt   time.Time
}

// Left is how many units the claim still holds.
func (c Claim) Left() int64 {
	if c.State != Held {
		return 0
	}
	return c.Unused
}

// Refusal is why the claim was refused, as an error; nil where it was given.
func (c Claim) Refusal() error {
	if c.State != Refused {
		return nil
	}
	return c.Reason
}

var claimColumns = []string{
	"claim_id", "promotion_id", "user_id", "token_id", "app", "quantity", "left_quantity", "state", "reason", "epoch", "bucket",
	"stream_ms", "stream_no", "expires_at", "created_at",
}

// scanClaims reads rows of [claimColumns] and closes them.
func scanClaims(rows *sql.Rows) (list []Claim, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var c Claim
		var epoch, streamMS, streamNo *int64
		var bucket *int
		err := rows.Scan(&c.ClaimID, &c.PromotionID, &c.UserID, &c.TokenID, &c.App, &c.Quantity, &c.Unused, &c.State, &c.Reason,
			&epoch, &bucket, &streamMS, &streamNo, &c.ExpiresAt, &c.CreatedAt)
		if err != nil {
			return nil, fmt.Errorf("read claims: %w", err)
		}
		if epoch != nil && bucket != nil && streamMS != nil && streamNo != nil {
			c.Source = &Source{*epoch, *bucket, *streamMS, *streamNo}
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

// readClaims reads claims as condition says; what a list of values needs is in its arguments.
func readClaims(tx *gorm.DB, condition string, args ...any) ([]Claim, error) {
	rows, err := tx.Raw("SELECT "+strings.Join(claimColumns, ", ")+" FROM claims "+condition, args...).Rows()
	if err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	return scanClaims(rows)
}

// ReadClaim reads one claim, or returns [ErrNoClaim]. tx may be a plain read.
func ReadClaim(tx *gorm.DB, claimID int64) (Claim, error) {
	list, err := readClaims(tx, "WHERE claim_id = ?", claimID)
	if err != nil {
		return Claim{}, err
	}
	if len(list) == 0 {
		return Claim{}, fmt.Errorf("claim %d: %w", claimID, ErrNoClaim)
	}
	return list[0], nil
}

// ReadByToken reads the claim that an order token made, or returns [ErrNoClaim]. tx may be a plain read.
func ReadByToken(tx *gorm.DB, promotionID int64, token TokenID) (Claim, error) {
	list, err := readClaims(tx, "WHERE promotion_id = ? AND token_id = ?", promotionID, token)
	if err != nil {
		return Claim{}, err
	}
	if len(list) == 0 {
		return Claim{}, fmt.Errorf("claim of an order token: %w", ErrNoClaim)
	}
	return list[0], nil
}
