package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, 1)
	dsn, folder := "--database-dsn="+in.dsn, t.TempDir()
	products, planograms := filepath.Join(folder, "products.csv"), filepath.Join(folder, "planograms.csv")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		status, stdout, stderr := command(t, append(args, dsn)...)
		if status != want {
			t.Fatalf("%v: status %d, %q %q; want %d", args, status, stdout, stderr, want)
		}
		return stdout, stderr
	}
	write(products, "sku,name,priceMinor\nSKU1,Product 1,150\nNEW,Neu,5\n")
	if stdout, _ := run(0, "import", "products", products); stdout != "products: 1 added, 1 changed, 0 unchanged\n" {
		t.Errorf("import says %q", stdout)
	}
	write(planograms, "deviceId,lane,productId,capacity,parLevel\n1001,1,6,12,4\n")
	if stdout, _ := run(0, "import", "planograms", planograms); stdout != "planograms: 1 changed, 0 unchanged\n" {
		t.Errorf("import says %q", stdout)
	}
	for _, what := range []string{"products", "planograms"} {
		printed, _ := run(0, "export", what)
		file := filepath.Join(folder, what+"-again.csv")
		run(0, "export", what, file)
		if written, err := os.ReadFile(file); err != nil || string(written) != printed {
			t.Errorf("%s: file %q, %v; printed %q", what, written, err, printed)
		}
		if stdout, _ := run(0, "import", what, file); !strings.Contains(stdout, " 0 changed") || strings.Contains(stdout, " 1 added") {
			t.Errorf("an export of %s, imported: %q", what, stdout)
		}
	}
	write(products, "sku,name,priceMinor\nSKU1,Product 1,free\nOTHER,x,\n")
	_, stderr := run(1, "import", "products", products)
	for _, want := range []string{products, "nothing was imported", "line 2: priceMinor", "line 3: priceMinor"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("%q lacks %q", stderr, want)
		}
	}
	run(1, "import", "products", filepath.Join(folder, "missing.csv"))
	if n := in.count("SELECT COUNT(*) FROM audit_log WHERE actor = 'command'"); n != 3 {
		t.Errorf("%d changes in the audit log by a command, want 3", n)
	}
}

// The commands of docs/operating.md, pasted into a shell, but for those that need the programs of Mosquitto.
func TestOperatingPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, section := range []string{
		"REST", "Planogram, filling, restock list", "Deciding a review", "Taking stock", "Products and planograms as CSV",
	} {
		_, text, found := strings.Cut(string(page), "\n## "+section+"\n")
		if !found {
			t.Fatalf("docs/operating.md has no section %q", section)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			script += block[1]
		}
	}
	printed := paste(t, script,
		`"lanes":[{"lane":1,`, "1001,HQ,7,12,16,12", `"outcome":"restocked"`, `"epc":"3036142C8C008F8000053244"`,
		`"status":"accepted"`, `"status":"void"`, `"delta":-2,"balance":20`, `"kind":"writeoff","delta":-2,"balance":16`,
		"0 added, 0 changed", "planograms: 0 changed, ")
	if strings.Contains(printed, "urn:doortab:problem") {
		t.Errorf("a command of the page is refused:\n%s", printed)
	}
}
