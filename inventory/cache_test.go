package inventory_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"doortab/database"
	"doortab/database/databasetest"
	"doortab/inventory"
)

// kept is a cache over a catalogue of the product 7 at 500, and a clock.
type kept struct {
	inventory.Cache
	t   *testing.T
	db  *database.DB
	now time.Time
}

func newKept(t *testing.T) *kept {
	k := &kept{t: t, db: databasetest.New(t), now: time.Now()}
	create(t, inventory.NewCatalogue(k.db), cola())
	return k
}

// silently changes the price as no writer may: without the mark.
func (k *kept) silently(minor int64) {
	k.t.Helper()
	exec(k.t, k.db, "UPDATE product_prices SET price_minor = ? WHERE product_id = 7", minor)
}

func (k *kept) price(v *inventory.View) int64 {
	k.t.Helper()
	articles, err := v.Articles(k.db.Read(k.t.Context()), []int64{7, 7}, nil)
	if err != nil || articles[7] == nil {
		k.t.Fatal(articles, err)
	}
	return articles[7].Prices[0].PriceMinor
}

func TestTheCatalogueIsKeptUnderItsMark(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	step := func(name string, mark int64, later time.Duration, change, want int64) {
		t.Helper()
		k.silently(change)
		k.now = k.now.Add(later)
		if got := k.price(k.At(mark, k.now)); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	step("read first", 1, 0, 501, 501)
	step("kept", 1, time.Second, 502, 501)
	step("a later mark", 2, 0, 503, 503)
	step("whoever read the earlier mark reads for himself", 1, 0, 504, 504)
	step("and leaves nothing", 2, 0, 505, 503)
	step("kept by nobody for ever", 2, time.Minute, 506, 506)
	step("an earlier mark, as of a restored database, counts then too", 1, time.Minute, 507, 507)
	step("and is kept", 1, 0, 508, 507)
}

// A writer that commits between the reading of the mark and that of the row leaves a row that is newer than the mark, and
// never one that is older.
func TestACommitBetweenMarkAndRowLeavesNothingStale(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	slow := k.At(1, k.now)
	k.silently(600) // and raised to 2
	fast := k.At(2, k.now)
	if got := k.price(slow); got != 600 {
		t.Errorf("the slow one reads %d", got)
	}
	k.silently(700) // and raised to 3, before fast reads
	if got := k.price(fast); got != 700 {
		t.Errorf("the fast one got %d from who read the mark before", got)
	}
}

func TestWhatIsNotThereIsKeptToo(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	catalogue, tx := inventory.NewCatalogue(k.db), k.db.Read(t.Context())
	const gtin = "04006381333931"
	find := func(mark int64) []int64 {
		t.Helper()
		articles, err := k.At(mark, k.now).Articles(tx, []int64{7, 8}, []string{gtin, gtin})
		if err != nil {
			t.Fatal(err)
		}
		planograms, err := k.At(mark, k.now).Planograms(tx, []int64{1001})
		if err != nil || len(planograms) != 0 {
			t.Fatal(planograms, err)
		}
		var ids []int64
		for id, a := range articles {
			if a.ProductID != id || a.UnitWeightGrams != 0 && id != 7 {
				t.Errorf("%d is %+v", id, a)
			}
			ids = append(ids, id)
		}
		return slices.Sorted(slices.Values(ids))
	}
	if got := find(1); !slices.Equal(got, []int64{7}) {
		t.Errorf("at first %v", got)
	}
	create(t, catalogue, inventory.Product{ProductID: 8, SKU: "eight", Name: "x"})
	create(t, catalogue, inventory.Product{ProductID: 9, SKU: "nine", Name: "x", GTIN: gtin[1:]})
	if got := find(1); !slices.Equal(got, []int64{7}) {
		t.Errorf("under the same mark %v", got)
	}
	for range 2 {
		if got := find(2); !slices.Equal(got, []int64{7, 8, 9}) {
			t.Errorf("under the next %v", got)
		}
	}
}

// What the view before knew is read with the first that is missing, so that an old view costs one event and not each. While
// views follow one another quickly it would cost each event all of it.
func TestANewViewReadsAtOnceWhatTheOldOneKnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kept  time.Duration
		again bool
	}{"of one that was kept for a while": {2 * time.Second, true}, "of one that was hardly kept": {100 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKept(t)
			tx := k.db.Read(t.Context())
			create(t, inventory.NewCatalogue(k.db), inventory.Product{ProductID: 8, SKU: "eight", Name: "x"})
			if _, err := k.At(1, k.now).Articles(tx, []int64{7, 8}, nil); err != nil {
				t.Fatal(err)
			}
			view := k.At(2, k.now.Add(c.kept))
			if _, err := view.Articles(tx, []int64{8}, nil); err != nil {
				t.Fatal(err)
			}
			k.silently(999)
			if again := k.price(view) != 999; again != c.again {
				t.Errorf("product 7 was read with product 8: %t", again)
			}
		})
	}
}

func TestOldPricesAreNotKept(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	for day := range 50 {
		exec(t, k.db, "INSERT INTO product_prices (product_id, valid_from, price_minor) VALUES (7, ?, ?)", k.now.AddDate(0, 0, -100+day), day)
	}
	view := k.At(1, k.now)
	articles, err := view.Articles(k.db.Read(t.Context()), []int64{7}, nil)
	if err != nil || len(articles[7].Prices) != 2 { // the one before yesterday and the one of now
		t.Errorf("%+v, error %v", articles[7].Prices, err)
	}
	if !view.PricesReach(k.now.Add(-23*time.Hour)) || view.PricesReach(k.now.Add(-25*time.Hour)) {
		t.Error("they don't reach back a day")
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	k := newKept(t)
	tx, view := k.db.Read(t.Context()), k.At(1, k.now)
	for i := range int64(200) {
		ids := make([]int64, 1000)
		for n := range ids {
			ids[n] = 1_000_000 + i*1000 + int64(n)
		}
		if _, err := view.Articles(tx, ids, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := view.Planograms(tx, ids); err != nil {
			t.Fatal(err)
		}
	}
	if products, planograms := view.Kept(); products > 70_000 || planograms > 70_000 {
		t.Errorf("%d products, %d planograms are kept", products, planograms)
	}
}

func TestEachWriterRaisesTheMark(t *testing.T) {
	t.Parallel()
	db := newFleet(t, 1) // and product 7
	catalogue := inventory.NewCatalogue(db)
	ctx, now := t.Context(), database.Now()
	inTx := func(work func(tx *gorm.DB) error) func() error { return func() error { return db.InTx(ctx, work) } }
	lane := inventory.Lane{Lane: 1, ProductID: 7, Capacity: 5}
	draft := func(price int64) func() error {
		return func() error {
			_, err := catalogue.Merge(ctx, []inventory.Draft{{ProductID: 7, Change: func(p *inventory.Product, _ bool) error {
				p.PriceMinor = price
				return nil
			}}})
			return err
		}
	}
	patch := func(change func(p *inventory.Product)) func() error {
		return func() error {
			_, err := catalogue.Patch(ctx, 7, change)
			return err
		}
	}
	lanes := inTx(func(tx *gorm.DB) error {
		_, _, err := inventory.ReplaceLanes(tx, 1, []inventory.Lane{lane}, now)
		return err
	})
	tag := inTx(func(tx *gorm.DB) error { return inventory.PutOverride(tx, "ABCD", 7, now) })
	for _, c := range []struct {
		name   string
		change func() error
		raises bool
	}{
		{"a product", func() error {
			_, err := catalogue.Create(ctx, inventory.Product{ProductID: 9, SKU: "b", Name: "x"})
			return err
		}, true},
		{"a name", patch(func(p *inventory.Product) { p.Name = "other" }), true},
		{"a price", patch(func(p *inventory.Product) { p.PriceMinor++ }), true},
		{"nothing", patch(func(*inventory.Product) {}), false},
		{"a file of products", draft(7000), true},
		{"the same file", draft(7000), false},
		{"a planogram", lanes, true},
		{"the same planogram", lanes, false},
		{"a tag", tag, true},
		{"the same tag", tag, false},
		{"no tag", inTx(func(tx *gorm.DB) error { return inventory.DeleteOverride(tx, 1, "ABCD", now) }), true},
	} {
		raised := databasetest.Raised(t, db)
		if err := c.change(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if raised(c.name) != c.raises {
			t.Errorf("%s: the mark is raised or not, and should have been otherwise", c.name)
		}
	}
}

// Writers that stand elsewhere would be forgotten by the test above.
func TestOnlyThisPackageWritesTheCatalogue(t *testing.T) {
	t.Parallel()
	writes := regexp.MustCompile(`(INTO|UPDATE|DELETE FROM)\s+(products|product_prices|lanes|epc_overrides)\b|` +
		`(Insert|UpdateEach|inChunks)\(tx, "(products|product_prices|lanes|epc_overrides)"`)
	var writers []string
	err := filepath.WalkDir("..", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", ".tools", "bench", "migrations"}, entry.Name()) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for range writes.FindAll(text, -1) {
			writers = append(writers, filepath.Base(filepath.Dir(path))+"/"+entry.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "[inventory/lanes.go inventory/lanes.go inventory/merge.go inventory/merge.go inventory/merge.go inventory/merge.go " +
		"inventory/merge.go inventory/overrides.go inventory/overrides.go inventory/overrides.go inventory/products.go " +
		"inventory/products.go inventory/products.go]"
	if got := fmt.Sprint(writers); got != want {
		t.Errorf("statements that write the catalogue stand in\n%s, want\n%s\nA new one raises its mark and has its row in the test above.", got, want)
	}
}
