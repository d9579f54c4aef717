package promotion

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"doortab/database"
)

// rowsAtOnce bounds one statement that locks: MariaDB makes of a longer IN list a join that takes locks in an order of its own.
const rowsAtOnce = 400

func (d *Doors) readSites(tx *gorm.DB, purchases []Purchase) error {
	if !d.offers.sited {
		return nil
	}
	devices := map[int64]bool{}
	for _, p := range purchases {
		devices[p.DeviceID] = true
	}
	var rows []struct {
		DeviceID int64
		Site     string
	}
	err := tx.Raw("SELECT device_id, site FROM cabinets WHERE device_id IN ?", slices.Collect(maps.Keys(devices))).Scan(&rows).Error
	if err != nil {
		return fmt.Errorf("read the sites of cabinets: %w", err)
	}
	d.sites = make(map[int64]string, len(rows))
	for _, row := range rows {
		d.sites[row.DeviceID] = row.Site
	}
	return nil
}

const (
	lockQuotas = "SELECT promotion_id FROM promotion_quota FORCE INDEX (PRIMARY) WHERE promotion_id IN ? ORDER BY promotion_id"
	lockUsers  = `SELECT user_id FROM promotion_users FORCE INDEX (PRIMARY) WHERE (promotion_id, user_id) IN ?
		ORDER BY promotion_id, user_id`
	lockClaims = "SELECT claim_id FROM claims FORCE INDEX (PRIMARY) WHERE claim_id IN ? ORDER BY claim_id"
)

// readAccounts reads those that [Doors.count] has named, behind their locks where there are to be any.
func (d *Doors) readAccounts(tx *gorm.DB, locking database.Locking) error {
	promotions := slices.Sorted(maps.Keys(d.accounts))
	var persons [][]any
	for _, id := range promotions {
		for _, userID := range slices.Sorted(maps.Keys(d.accounts[id].counted)) {
			persons = append(persons, []any{id, userID})
		}
	}
	if err := lockEach(tx, lockQuotas, promotions, locking); err != nil {
		return fmt.Errorf("lock promotion_quota: %w", err)
	}
	if err := lockEach(tx, lockUsers, persons, locking); err != nil {
		return fmt.Errorf("lock promotion_users: %w", err)
	}
	for _, id := range promotions {
		if err := d.accounts[id].read(tx, id); err != nil {
			return err
		}
	}
	return nil
}

func (a *account) read(tx *gorm.DB, promotionID int64) (err error) {
	err = tx.Raw("SELECT quota - taken FROM promotion_quota WHERE promotion_id = ?", promotionID).Scan(&a.left).Error
	if err != nil {
		return fmt.Errorf("read the quota of promotion %d: %w", promotionID, err)
	}
	a.users, err = readUsers(tx, promotionID, slices.Collect(maps.Keys(a.counted)))
	return err
}

const findPledges = `SELECT claim_id, promotion_id, user_id, left_quantity, expires_at FROM claims FORCE INDEX (claims_user)
	WHERE user_id IN ? AND state = 'held'`

// readPledges reads what persons hold, and once more behind its locks where there are to be any.
func (d *Doors) readPledges(tx *gorm.DB, userIDs []int64, locking database.Locking) error {
	held, err := readPledges(tx, userIDs)
	if err != nil {
		return err
	}
	if locking != database.Optimistic {
		ids := make([]int64, len(held))
		for i, c := range held {
			ids[i] = c.claimID
		}
		slices.Sort(ids)
		if err := lockEach(tx, lockClaims, ids, locking); err != nil {
			return fmt.Errorf("lock claims: %w", err)
		}
		if held, err = readPledges(tx, userIDs); err != nil {
			return err
		}
	}
	slices.SortFunc(held, func(a, b *pledge) int {
		return cmp.Or(a.expiresAt.Compare(b.expiresAt), cmp.Compare(a.claimID, b.claimID))
	})
	d.pledges = make(map[int64][]*pledge, len(userIDs))
	for _, c := range held {
		d.pledges[c.userID] = append(d.pledges[c.userID], c)
	}
	return nil
}

func readPledges(tx *gorm.DB, userIDs []int64) (held []*pledge, err error) {
	for some := range slices.Chunk(userIDs, rowsAtOnce) {
		rows, err := tx.Raw(findPledges, some).Rows()
		if err != nil {
			return nil, fmt.Errorf("read the claims of %d persons: %w", len(some), err)
		}
		err = eachRow(rows, func() error {
			c := &pledge{}
			err := rows.Scan(&c.claimID, &c.promotionID, &c.userID, &c.left, &c.expiresAt)
			c.before = c.left
			held = append(held, c)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return held, nil
}

// lockEach locks rows in the order of their keys; what is read after it is as they are then.
func lockEach[T any](tx *gorm.DB, query string, keys []T, locking database.Locking) error {
	if locking == database.Optimistic {
		return nil
	}
	for some := range slices.Chunk(keys, rowsAtOnce) {
		if err := tx.Exec(query+locking.Clause(), some).Error; err != nil {
			return err
		}
	}
	return nil
}
