package spreadsheet

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"doortab/auditlog"
	"doortab/database"
	"doortab/database/databasetest"
	"doortab/fleet"
	"doortab/inventory"
)

func importProducts(t *testing.T, db *database.DB, file string) (inventory.Merged, error) {
	t.Helper()
	return ReadProducts(auditlog.WithActor(t.Context(), "command"), db, strings.NewReader(file))
}

func mustImport(t *testing.T, db *database.DB, file string, want inventory.Merged) {
	t.Helper()
	got, err := importProducts(t, db, file)
	if err != nil || got != want {
		t.Fatalf("import: %+v, %v; want %+v", got, err, want)
	}
}

func exportProducts(t *testing.T, db *database.DB) string {
	t.Helper()
	var text bytes.Buffer
	if err := WriteProducts(t.Context(), db, &text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func count(t *testing.T, db *database.DB, query string) int {
	t.Helper()
	var n int
	if err := db.Read(t.Context()).Raw(query).Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

const header = "productId,sku,name,gtin,priceMinor,unitWeightGrams,weightToleranceGrams\r\n"

func TestProductsAreAddedAndChanged(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	mustImport(t, db, "\uFEFFname,sku,priceMinor,gtin,productId\r\n"+
		"\"Cola, 330 ml\",COLA330,500,08719139005740,7\r\n水,TEA,300,,\r\n'=1+1,\"=\"\"\",1,,\r\n", inventory.Merged{Added: 3})
	want := header + "7,COLA330,\"Cola, 330 ml\",08719139005740,500,,\r\n8,TEA,水,,300,,\r\n9,\"'=\"\"\",'=1+1,,1,,\r\n"
	if got := exportProducts(t, db); got != want {
		t.Errorf("export %s", cmp.Diff(want, got))
	}
	mustImport(t, db, "sku,priceMinor\nTEA,350\nCOLA330,500\n", inventory.Merged{Changed: 1, Unchanged: 1})
	mustImport(t, db, "productId,unitWeightGrams,gtin\n7, 345 ,\n", inventory.Merged{Changed: 1})
	want = header + "7,COLA330,\"Cola, 330 ml\",,500,345,\r\n8,TEA,水,,350,,\r\n9,\"'=\"\"\",'=1+1,,1,,\r\n"
	if got := exportProducts(t, db); got != want {
		t.Errorf("export %s", cmp.Diff(want, got))
	}
	if n := count(t, db, "SELECT COUNT(*) FROM product_prices"); n != 4 {
		t.Errorf("%d prices, want one for each product and one for the changed price", n)
	}
	if n := count(t, db, "SELECT COUNT(*) FROM audit_log WHERE actor = 'command'"); n != 5 {
		t.Errorf("%d lines in the audit log, want one for each change", n)
	}
	if n := count(t, db, "SELECT COUNT(*) FROM audit_log WHERE target = 'product 8' AND action = 'product.patch' "+
		`AND before_change LIKE '%"priceMinor":300%' AND after_change LIKE '%"priceMinor":350%'`); n != 1 {
		t.Errorf("%d lines tell the change of price", n)
	}
}

func TestAnImportOfAnExportChangesNothing(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	catalogue := inventory.NewCatalogue(db)
	weight := int64(345)
	names := []string{"=1+1", "'=x", "'n Dag", "a\r\nb", "\r", "\"", ",", " ", "\x00", "-5 °C", "水", "\uFEFF", "\n"}
	for i, name := range names {
		p := inventory.Product{SKU: name, Name: name, PriceMinor: int64(i), UnitWeightGrams: &weight}
		if _, err := catalogue.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	before, lines := exportProducts(t, db), count(t, db, "SELECT COUNT(*) FROM audit_log")
	mustImport(t, db, before, inventory.Merged{Unchanged: len(names)})
	if got := exportProducts(t, db); got != before {
		t.Errorf("export %s", cmp.Diff(before, got))
	}
	if n := count(t, db, "SELECT COUNT(*) FROM audit_log"); n != lines {
		t.Errorf("%d new lines in the audit log", n-lines)
	}
	empty := databasetest.New(t)
	mustImport(t, empty, before, inventory.Merged{Added: len(names)})
	if got := exportProducts(t, empty); got != before {
		t.Errorf("the catalogue on another database: %s", cmp.Diff(before, got))
	}
}

func TestProductsMaySwapTheirKeys(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	mustImport(t, db, "productId,sku,name,priceMinor,gtin\n1,A,a,1,40170725\n2,B,b,1,08719139005740\n", inventory.Merged{Added: 2})
	mustImport(t, db, "productId,sku,gtin\n1,B,8719139005740\n2,A,40170725\n", inventory.Merged{Changed: 2})
	want := header + "1,B,a,8719139005740,1,,\r\n2,A,b,40170725,1,,\r\n"
	if got := exportProducts(t, db); got != want {
		t.Errorf("export %s", cmp.Diff(want, got))
	}
}

func TestEachWrongLineIsNamedAndNothingIsImported(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	mustImport(t, db, "productId,sku,name,priceMinor,gtin\n7,COLA,Cola,500,40170725\n", inventory.Merged{Added: 1})
	before := exportProducts(t, db)
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"an empty file":        {"", []string{"line 1", "empty"}},
		"an unknown column":    {"sku,price\n", []string{"line 1", `"price"`}},
		"semicolons":           {"sku;name\n", []string{"line 1", `"sku;name"`}},
		"a column twice":       {"sku,sku\n", []string{"line 1", "twice"}},
		"not UTF-8":            {"sku,name\nA,b\nB,caf\xe9\n", []string{"line 3", "UTF-8"}},
		"a line too short":     {"sku,name,priceMinor\nA,a,1\nB,b\n", []string{"line 3: 2 cells"}},
		"a quote":              {"sku,name,priceMinor\nA,a\"b,1\n\"B\nC,c,1\n", []string{"line 2: a quote", "line 3: a quote"}},
		"a price with a point": {"sku,name,priceMinor\nA,a,5.00\n", []string{`line 2: priceMinor "5.00"`}},
		"no price":             {"sku,name,priceMinor\nA,a,\nCOLA,x,\n", []string{"line 2: priceMinor", "line 3: priceMinor"}},
		"a new one, no price":  {"sku,name\nA,a\n", []string{"line 2: priceMinor"}},
		"a new one, no name":   {"sku,priceMinor\nA,1\n", []string{"line 2: name"}},
		"unreadable and contradicting": {"sku,name,priceMinor,gtin\nA,a,1\nB,b,x,\nC,c,1,40170725\n",
			[]string{"line 2: 3 cells", "line 3: priceMinor", "line 4: gtin is taken"}},
		"several": {"sku,name,priceMinor,gtin\nA,a,-1,\n,b,1,\nC,c,1,123\nD,d,1,\n",
			[]string{"line 2: priceMinor", "line 3: sku", "line 4: gtin"}},
		"a number out of range": {"productId,sku,name,priceMinor\n0,A,a,1\n9007199254740992,B,b,1\n99999999999999999999,C,c,1\n",
			[]string{"line 2", "line 3", "line 4"}},
		"a product twice": {"productId,sku,name,priceMinor\n7,COLA,x,1\n,COLA,y,1\n", []string{"line 3: product 7 is there twice"}},
		"a new id twice":  {"productId,sku,name,priceMinor\n9,A,x,1\n9,B,y,1\n", []string{"line 3: product 9 is there twice"}},
		"a sku twice":     {"sku,name,priceMinor\nA,x,1\nA,y,1\n", []string{"line 3: sku is taken"}},
		"a taken sku":     {"productId,sku,name,priceMinor\n9,COLA,x,1\n", []string{"line 2: sku is taken"}},
		"a taken gtin":    {"sku,name,priceMinor,gtin\nA,x,1,00000040170725\n", []string{"line 2: gtin is taken"}},
	} {
		_, err := importProducts(t, db, c.file)
		if err == nil {
			t.Errorf("%s was imported", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", name, err, want)
			}
		}
	}
	if got := exportProducts(t, db); got != before {
		t.Errorf("a refused file was imported: %s", cmp.Diff(before, got))
	}
	_, err := importProducts(t, db, "sku,name,priceMinor\n"+strings.Repeat("A,a,x\n", 1000))
	var problems *Problems
	if !errors.As(err, &problems) || strings.Count(err.Error(), "\n") != shownErrors+1 || !strings.HasSuffix(err.Error(), "and 900 more") {
		t.Errorf("a thousand wrong lines: %v", err)
	}
}

func TestTenThousandProductsTakeSeconds(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	var file strings.Builder
	file.WriteString("productId,sku,name,priceMinor,unitWeightGrams\n")
	for i := range 10_000 {
		fmt.Fprintf(&file, "%d,SKU%d,Product %d,%d,%d\n", i+1, i, i, i, i+1)
	}
	began := time.Now()
	mustImport(t, db, file.String(), inventory.Merged{Added: 10_000})
	mustImport(t, db, file.String(), inventory.Merged{Unchanged: 10_000})
	mustImport(t, db, strings.ReplaceAll(file.String(), ",SKU", ",NEW"), inventory.Merged{Changed: 10_000})
	took := time.Since(began)
	t.Logf("three times in %s", took)
	if took > time.Minute { // seconds; the rest is for a machine that does other things too
		t.Errorf("three times took %s", took)
	}
}

func TestPlanogramsAreReplacedByCabinet(t *testing.T) {
	t.Parallel()
	db := databasetest.New(t)
	mustImport(t, db, "productId,sku,name,priceMinor\n7,A,a,1\n8,B,b,1\n", inventory.Merged{Added: 2})
	for id := int64(1); id <= 3; id++ {
		if _, err := fleet.NewRegistry(db).Register(t.Context(), fleet.Cabinet{DeviceID: id, Name: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(file string) (Planograms, error) {
		return ReadPlanograms(auditlog.WithActor(t.Context(), "command"), db, strings.NewReader(file))
	}
	write := func() string {
		var text bytes.Buffer
		if err := WritePlanograms(t.Context(), db, &text); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	done, err := read("lane,deviceId,capacity,parLevel,productId\n1,1,12,4,7\n2,1,12,4,8\n1,2,5,5,7\n")
	if err != nil || done != (Planograms{Changed: 2}) {
		t.Fatalf("%+v, %v", done, err)
	}
	done, err = read("deviceId,lane,productId,capacity,parLevel\n1,2,8,12,4\n3,1,7,1,0\n")
	if err != nil || done != (Planograms{Changed: 2}) {
		t.Fatalf("%+v, %v", done, err)
	}
	const want = "deviceId,lane,productId,capacity,parLevel\r\n1,2,8,12,4\r\n2,1,7,5,5\r\n3,1,7,1,0\r\n"
	if got := write(); got != want {
		t.Errorf("export %s", cmp.Diff(want, got))
	}
	if done, err = read(want); err != nil || done != (Planograms{Unchanged: 3}) {
		t.Errorf("an export, imported: %+v, %v", done, err)
	}
	if n := count(t, db, "SELECT COUNT(*) FROM audit_log WHERE action = 'planogram.put' AND actor = 'command'"); n != 4 {
		t.Errorf("%d lines in the audit log", n)
	}
	_, err = read("deviceId,lane,productId,capacity,parLevel\n1,1,7,5,6\n1,1,7,5,5\n1,1,7,5,5\n2,,7,5,5\n")
	for _, line := range []string{"line 2: parLevel", "line 4: lane 1 of cabinet 1 is on line 3", "line 5: lane"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v lacks %q", err, line)
		}
	}
	_, err = read("deviceId,lane,productId,capacity,parLevel\n1,1,9,5,5\n9,1,7,5,5\n9,2,7,5,5\n")
	for _, line := range []string{"line 2: product 9: unknown product", "line 3: cabinet 9: no such cabinet", "line 4: cabinet 9"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v lacks %q", err, line)
		}
	}
	_, err = read("deviceId,lane,productId,capacity,parLevel\n1,1,9,5,5\n9,1,7,5,5\n1,2,7,x,5\n1,3,7\n")
	for _, line := range []string{"line 2: product 9", "line 3: cabinet 9", `line 4: capacity "x"`, "line 5: 3 cells"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%v lacks %q", err, line)
		}
	}
	if got := write(); got != want {
		t.Errorf("a refused file was imported: %s", cmp.Diff(want, got))
	}
}
