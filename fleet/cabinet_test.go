package fleet

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/cabinet"
	"doortab/database/databasetest"
)

func register(t testing.TB, r *Registry, deviceID int64) {
	t.Helper()
	if _, err := r.Register(t.Context(), Cabinet{DeviceID: deviceID, Name: "Lobby"}); err != nil {
		t.Fatal(err)
	}
}

func TestACabinetIsKeptAsItWasRegistered(t *testing.T) {
	t.Parallel()
	r := NewRegistry(databasetest.New(t))
	name := strings.Repeat("冷", 200)
	made, err := r.Register(t.Context(), Cabinet{DeviceID: cabinet.MaxID, Name: name, Site: " HQ ", Online: true})
	if err != nil {
		t.Fatal(err)
	}
	read, err := r.Cabinet(t.Context(), cabinet.MaxID)
	if err != nil || read != made || read.Name != name || read.Site != " HQ " || read.Online || read.LastSeenAt != nil {
		t.Errorf("read %+v, made %+v, %v", read, made, err)
	}
	if _, err := r.Register(t.Context(), Cabinet{DeviceID: cabinet.MaxID, Name: "b"}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("second registration: %v", err)
	}
	if _, err := r.Cabinet(t.Context(), 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown cabinet: %v", err)
	}
}

func TestACabinetOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	r := NewRegistry(databasetest.New(t))
	long := strings.Repeat("a", 201)
	for name, c := range map[string]Cabinet{
		"no id":        {Name: "a"},
		"negative id":  {DeviceID: -1, Name: "a"},
		"id too large": {DeviceID: cabinet.MaxID + 1, Name: "a"},
		"no name":      {DeviceID: 1},
		"long name":    {DeviceID: 1, Name: long},
		"broken name":  {DeviceID: 1, Name: "\xff"},
		"long site":    {DeviceID: 1, Name: "a", Site: long},
	} {
		if _, err := r.Register(t.Context(), c); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	register(t, r, 1)
	if _, err := r.Patch(t.Context(), 1, func(c *Cabinet) { c.Name = long }); !errors.Is(err, ErrInvalid) {
		t.Errorf("patch with a long name: %v", err)
	}
	if _, err := r.Patch(t.Context(), 2, func(*Cabinet) {}); !errors.Is(err, ErrNotFound) {
		t.Errorf("patch of an unknown cabinet: %v", err)
	}
}

func TestAPatchLeavesWhatItDoesNotName(t *testing.T) {
	t.Parallel()
	r := NewRegistry(databasetest.New(t))
	register(t, r, 1)
	site := "HQ"
	for range 2 { // the second changes nothing, which is no error
		c, err := r.Patch(t.Context(), 1, func(c *Cabinet) { c.Site = site })
		if err != nil || c.Name != "Lobby" || c.Site != "HQ" {
			t.Errorf("%+v, %v", c, err)
		}
	}
}

func TestOnlyACabinetThatIsThereAndNotLockedMayOpen(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	r, b := NewRegistry(db), NewStatusBoard(db, quiet())
	register(t, r, 1)
	mayOpen := func(deviceID int64) error {
		return db.InTx(t.Context(), func(tx *gorm.DB) error { return MayOpen(tx, deviceID) })
	}
	lock := func(locked bool) {
		if c, err := r.Patch(t.Context(), 1, func(c *Cabinet) { c.Locked = locked }); err != nil || c.Locked != locked {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	if err := mayOpen(2); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
	if err := mayOpen(1); !errors.Is(err, ErrOffline) {
		t.Errorf("offline: %v", err)
	}
	b.Offer(1, true, "", time.Now())
	b.flush(t.Context())
	if err := mayOpen(1); err != nil {
		t.Errorf("online: %v", err)
	}
	lock(true)
	if err := mayOpen(1); !errors.Is(err, ErrLocked) {
		t.Errorf("locked: %v", err)
	}
	lock(false)
	if err := mayOpen(1); err != nil {
		t.Errorf("unlocked: %v", err)
	}
}

func TestTheListGoesDownFromTheHighest(t *testing.T) {
	t.Parallel()
	r := NewRegistry(databasetest.New(t))
	for _, id := range []int64{3, cabinet.MaxID, 1} {
		register(t, r, id)
	}
	first, err := r.List(t.Context(), 0, 2)
	if err != nil || len(first) != 2 || first[0].DeviceID != cabinet.MaxID || first[1].DeviceID != 3 {
		t.Fatalf("%+v, %v", first, err)
	}
	rest, err := r.List(t.Context(), 3, 2)
	if err != nil || len(rest) != 1 || rest[0].DeviceID != 1 {
		t.Errorf("%+v, %v", rest, err)
	}
}

func TestASecretIsStoredOnlyAsItsHash(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	r := NewRegistry(db)
	register(t, r, 1)
	first, err := r.RotateSecret(t.Context(), 1)
	if err != nil || len(first) != 64 {
		t.Fatalf("secret of %d characters, %v", len(first), err)
	}
	second, err := r.RotateSecret(t.Context(), 1)
	if err != nil || first == second {
		t.Errorf("rotated from one secret to the same, %v", err)
	}
	hashes, err := readHashes(t.Context(), db, []int64{1, 2})
	if err != nil || len(hashes) != 1 || hashes[1] != sha256.Sum256([]byte(second)) {
		t.Errorf("hashes %x, %v", hashes, err)
	}
	if _, err := r.RotateSecret(t.Context(), 2); !errors.Is(err, ErrNotFound) {
		t.Errorf("unknown cabinet: %v", err)
	}
}
