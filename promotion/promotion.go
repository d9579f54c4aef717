// Package promotion keeps promotions: a product at a special price, with a quota of units, a limit for each person and a time
// window. It decides who gets a unit, and holds every rule and every write of quota, person counters, claims and their uses.
//
// promotion_quota.taken = what held claims have left + uses that were not given back + what open leases have left.
// Units come only from the conditional update of that row, and every other change is compare-and-set or guarded by the number
// of rows that it changed. Locks are taken in one order: promotion_quota, promotion_buckets, promotion_users, claims,
// promotion_uses, each ascending. The functions work on a transaction of the caller's.
package promotion

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"

	"doortab/auditlog"
	"doortab/database"
)

// Errors that callers act on; their texts are fit for a user.
var (
	ErrNotFound       = errors.New("no such promotion")
	ErrInvalid        = errors.New("not valid")
	ErrUnknownProduct = errors.New("is not in the catalogue")
	ErrBadTransition  = errors.New("can't become")
)

// Limits of a promotion.
const (
	MaxName       = 200 // characters
	MaxPriceMinor = 1<<53 - 1
	MaxQuota      = 1_000_000_000 // units
	MaxPerUser    = 1000          // units
	MaxClaimTTL   = 7 * 24 * time.Hour

	DefaultClaimTTL = 15 * time.Minute
)

// Way says how claims of a promotion are taken.
type Way string

// The ways. Both end in [Take], so they may follow each other at any moment.
const (
	Database Way = "database" // conditional updates in groups
	Redis    Way = "redis"    // one script on leased units, written to the database after
)

// Promotion is one promotion as it is kept.
type Promotion struct {
	PromotionID int64
	Name        string // 1 to 200 characters of any script
	ProductID   int64
	PriceMinor  int64  // what a unit costs with it; it only ever lowers the price in force
	Quota       int64  // units in all, 1 to 10^9
	PerUser     int64  // units for each person, 1 to 1000
	NeedsClaim  bool   // false: it applies at the door to whoever comes first
	Site        string // the cabinets of one site; "" for the whole fleet
	StartsAt    time.Time
	EndsAt      time.Time // the first moment that no longer counts
	ClaimTTLS   int64     // how long a claim is good, in seconds
	Way         Way
	State       State
	Taken       int64 // units that are held, used or leased
	CreatedAt   time.Time
	UpdatedAt   time.Time // since when it is in its state
}

// ClaimTTL is how long a claim is good.
func (p Promotion) ClaimTTL() time.Duration { return time.Duration(p.ClaimTTLS) * time.Second }

// Left is how many units nobody has yet.
func (p Promotion) Left() int64 { return p.Quota - p.Taken }

// LiveAt tells whether the promotion gives units at a moment.
func (p Promotion) LiveAt(at time.Time) bool {
	return p.State == Live && !at.Before(p.StartsAt) && at.Before(p.EndsAt)
}

// gaveAt tells whether a promotion that gave units at a moment, as somebody says who may not have heard of its last change, did so.
func (p Promotion) gaveAt(at time.Time) bool { return p.State == Live || at.Before(p.UpdatedAt) }

const selected = `SELECT p.promotion_id, p.name, p.product_id, p.price_minor, p.quota, p.per_user, p.needs_claim, p.site, p.starts_at,
  p.ends_at, p.claim_ttl_s, p.way, p.state, q.taken, p.created_at, p.updated_at
  FROM promotions p JOIN promotion_quota q ON q.promotion_id = p.promotion_id`

// Create adds a draft in the caller's transaction; PromotionID, State, Taken and CreatedAt are assigned, and Way and ClaimTTLS
// have defaults. It returns [ErrInvalid] for values out of range and [ErrUnknownProduct].
func Create(tx *gorm.DB, p Promotion, now time.Time) (Promotion, error) {
	p = p.draft(now)
	if err := p.validate(); err != nil {
		return Promotion{}, err
	}
	if err := productExists(tx, p.ProductID); err != nil {
		return Promotion{}, err
	}
	err := database.Insert(tx, "promotions", []string{
		"promotion_id", "name", "product_id", "price_minor", "quota", "per_user", "needs_claim", "site", "starts_at", "ends_at",
		"claim_ttl_s", "way", "state", "created_at", "updated_at",
	}, [][]any{{
		p.PromotionID, p.Name, p.ProductID, p.PriceMinor, p.Quota, p.PerUser, p.NeedsClaim, p.Site, p.StartsAt, p.EndsAt,
		p.ClaimTTLS, p.Way, p.State, now, now,
	}}, "")
	if database.IsDuplicate(err) {
		return Promotion{}, fmt.Errorf("promotion %d: %w", p.PromotionID, database.ErrConflict)
	}
	if err != nil {
		return Promotion{}, err
	}
	err = database.Insert(tx, "promotion_quota", []string{"promotion_id", "quota", "taken"}, [][]any{{p.PromotionID, p.Quota, 0}}, "")
	if err != nil {
		return Promotion{}, err
	}
	return p, auditlog.Write(tx, auditlog.Entry{Action: "promotion.create", Target: target(p.PromotionID), After: p.settings()}, now)
}

func (p Promotion) draft(now time.Time) Promotion {
	p.PromotionID, p.State, p.Taken, p.CreatedAt, p.UpdatedAt = database.NewID(now), Draft, 0, now, now
	p.StartsAt, p.EndsAt = p.StartsAt.UTC().Truncate(time.Millisecond), p.EndsAt.UTC().Truncate(time.Millisecond)
	if p.Way == "" {
		p.Way = Database
	}
	if p.ClaimTTLS == 0 {
		p.ClaimTTLS = int64(DefaultClaimTTL / time.Second)
	}
	return p
}

func (p Promotion) validate() error {
	switch {
	case !fits(p.Name, 1):
		return fmt.Errorf("name %w: give 1 to %d characters", ErrInvalid, MaxName)
	case !fits(p.Site, 0):
		return fmt.Errorf("site %w: give up to %d characters", ErrInvalid, MaxName)
	case p.PriceMinor < 0 || p.PriceMinor > MaxPriceMinor:
		return fmt.Errorf("priceMinor %w: give 0 to %d", ErrInvalid, int64(MaxPriceMinor))
	case p.Quota < 1 || p.Quota > MaxQuota:
		return fmt.Errorf("quota %w: give 1 to %d", ErrInvalid, MaxQuota)
	case p.PerUser < 1 || p.PerUser > MaxPerUser:
		return fmt.Errorf("perUser %w: give 1 to %d", ErrInvalid, MaxPerUser)
	case p.ClaimTTLS < 1 || p.ClaimTTL() > MaxClaimTTL:
		return fmt.Errorf("claimTtlSeconds %w: give 1 to %d", ErrInvalid, int64(MaxClaimTTL/time.Second))
	case !storable(p.StartsAt) || !storable(p.EndsAt) || !p.StartsAt.Before(p.EndsAt):
		return fmt.Errorf("startsAt and endsAt %w: give two times, the end after the start", ErrInvalid)
	case p.Way != Database && p.Way != Redis:
		return fmt.Errorf("way %w: give database or redis", ErrInvalid)
	}
	return nil
}

func fits(text string, atLeast int) bool {
	n := utf8.RuneCountInString(text)
	return utf8.ValidString(text) && n >= atLeast && n <= MaxName
}

// storable: the database has no form for other years, and a DATETIME of year 1 is the zero time of a field that was left out.
func storable(at time.Time) bool { return at.Year() >= 1970 && at.Year() <= 9999 }

func productExists(tx *gorm.DB, productID int64) error {
	var found int64
	err := tx.Raw("SELECT COUNT(*) FROM products WHERE product_id = ?", productID).Scan(&found).Error
	if err != nil {
		return fmt.Errorf("look for product %d: %w", productID, err)
	}
	if found == 0 {
		return fmt.Errorf("product %d %w: add it first, or name another", productID, ErrUnknownProduct)
	}
	return nil
}

// Read reads one promotion, or returns [ErrNotFound]. tx may be a plain read.
func Read(tx *gorm.DB, promotionID int64) (Promotion, error) {
	var list []Promotion
	if err := tx.Raw(selected+" WHERE p.promotion_id = ?", promotionID).Scan(&list).Error; err != nil {
		return Promotion{}, fmt.Errorf("read promotion %d: %w", promotionID, err)
	}
	if len(list) == 0 {
		return Promotion{}, fmt.Errorf("promotion %d: %w", promotionID, ErrNotFound)
	}
	return list[0], nil
}

// Filter narrows a list; zero values leave it alone.
type Filter struct {
	State     State
	ProductID int64
}

// List reads up to limit promotions with ids below before, the newest first; 0 means from the top.
func List(ctx context.Context, db *database.DB, f Filter, before int64, limit int) ([]Promotion, error) {
	where, args := " WHERE TRUE", []any{}
	add := func(condition string, value any) { where, args = where+" AND "+condition, append(args, value) }
	if before > 0 {
		add("p.promotion_id < ?", before)
	}
	if f.State != "" {
		add("p.state = ?", f.State)
	}
	if f.ProductID != 0 {
		add("p.product_id = ?", f.ProductID)
	}
	var list []Promotion
	err := db.Read(ctx).Raw(selected+where+" ORDER BY p.promotion_id DESC LIMIT ?", append(args, limit)...).Scan(&list).Error
	if err != nil {
		return nil, fmt.Errorf("list promotions: %w", err)
	}
	return list, nil
}

// settings is a promotion as the audit log keeps it.
func (p Promotion) settings() map[string]any {
	return map[string]any{
		"name": p.Name, "productId": p.ProductID, "priceMinor": p.PriceMinor, "quota": p.Quota, "perUser": p.PerUser,
		"needsClaim": p.NeedsClaim, "site": p.Site, "startsAt": p.StartsAt, "endsAt": p.EndsAt, "claimTtlSeconds": p.ClaimTTLS,
		"way": p.Way,
	}
}

func target(promotionID int64) string { return fmt.Sprintf("promotion %d", promotionID) }
