package promotion

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"doortab/database"
)

// facts is what a group of asks is decided by, read without locks: every write that follows from it is guarded.
type facts struct {
	byToken map[TokenID]Claim
	written map[int64]Claim     // claims of entries that were written before, and others' with the same id
	users   map[int64]userCount // persons without a row are missing
	leased  map[bucketKey]int64 // units that buckets' leases have left
}

type userCount struct{ taken, version int64 }

type bucketKey struct {
	epoch  int64
	bucket int
}

func (s Source) key() bucketKey { return bucketKey{s.Epoch, s.Bucket} }

func readFacts(tx *gorm.DB, p Promotion, asks []Ask) (*facts, error) {
	f := &facts{byToken: map[TokenID]Claim{}, written: map[int64]Claim{}, users: map[int64]userCount{}, leased: map[bucketKey]int64{}}
	if err := f.readTokens(tx, p, asks); err != nil {
		return nil, err
	}
	streamed := slices.ContainsFunc(asks, func(a Ask) bool { return a.Source != nil })
	if p.Left() == 0 && !streamed { // nobody gets any, whatever the persons have
		return f, nil
	}
	if streamed {
		if err := f.readWritten(tx, asks); err != nil {
			return nil, err
		}
		if err := f.readLeases(tx, p, asks); err != nil {
			return nil, err
		}
	}
	return f, f.readUsers(tx, p, asks)
}

func (f *facts) readTokens(tx *gorm.DB, p Promotion, asks []Ask) error {
	keys := make([][]any, len(asks))
	for i, a := range asks {
		keys[i] = []any{p.PromotionID, a.TokenID.String()}
	}
	rows, err := database.ReadEachBy(tx, "claims", "claims_token",
		[]database.Column{database.Int("promotion_id"), database.Hex("token_id")}, claimColumns, keys)
	if err != nil {
		return err
	}
	found, err := scanClaims(rows)
	for _, c := range found {
		f.byToken[c.TokenID] = c
	}
	return err
}

func (f *facts) readWritten(tx *gorm.DB, asks []Ask) error {
	var keys [][]any
	for _, a := range asks {
		if a.Source != nil {
			keys = append(keys, []any{a.ClaimID})
		}
	}
	rows, err := database.ReadEach(tx, "claims", []database.Column{database.Int("claim_id")}, claimColumns, keys)
	if err != nil {
		return err
	}
	found, err := scanClaims(rows)
	for _, c := range found {
		f.written[c.ClaimID] = c
	}
	return err
}

func (f *facts) readLeases(tx *gorm.DB, p Promotion, asks []Ask) error {
	wanted := map[bucketKey]bool{}
	for _, a := range asks {
		if a.Source != nil {
			wanted[a.Source.key()] = true
		}
	}
	var keys [][]any
	for key := range maps.Keys(wanted) {
		keys = append(keys, []any{p.PromotionID, key.epoch, key.bucket})
	}
	rows, err := database.ReadEach(tx, "promotion_buckets",
		[]database.Column{database.Int("promotion_id"), database.Int("epoch"), database.Int("bucket")},
		[]string{"epoch", "bucket", "granted", "revoked", "written"}, keys)
	if err != nil {
		return err
	}
	return eachRow(rows, func() error {
		var key bucketKey
		var granted, revoked, written int64
		err := rows.Scan(&key.epoch, &key.bucket, &granted, &revoked, &written)
		f.leased[key] = granted - revoked - written
		return err
	})
}

func (f *facts) readUsers(tx *gorm.DB, p Promotion, asks []Ask) (err error) {
	userIDs := make([]int64, len(asks))
	for i, a := range asks {
		userIDs[i] = a.UserID
	}
	f.users, err = readUsers(tx, p.PromotionID, userIDs)
	return err
}

var userKeys = []database.Column{database.Int("promotion_id"), database.Int("user_id")}

func readUsers(tx *gorm.DB, promotionID int64, userIDs []int64) (map[int64]userCount, error) {
	slices.Sort(userIDs)
	userIDs = slices.Compact(userIDs)
	keys := make([][]any, len(userIDs))
	for i, id := range userIDs {
		keys[i] = []any{promotionID, id}
	}
	rows, err := database.ReadEach(tx, "promotion_users", userKeys, []string{"user_id", "taken", "version"}, keys)
	if err != nil {
		return nil, err
	}
	users := make(map[int64]userCount, len(userIDs))
	err = eachRow(rows, func() error {
		var id int64
		var u userCount
		err := rows.Scan(&id, &u.taken, &u.version)
		users[id] = u
		return err
	})
	return users, err
}

// eachRow calls scan for each row and closes the rows.
func eachRow(rows *sql.Rows, scan func() error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(); err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
	}
	return rows.Err()
}
