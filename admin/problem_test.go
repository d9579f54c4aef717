package admin

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// Programs tell problems apart by their types: docs/rest.md lists all that the API has.
func TestEveryTypeOfProblemIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/rest.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `"+typePrefix+"([a-z-]+)` \\| (\\d+) \\| .+ \\|$").FindAllStringSubmatch(string(text), -1) {
		documented[row[2]+" "+row[1]] = true
	}
	there := map[string]bool{}
	for status, kind := range typeOf {
		there[fmt.Sprint(status, " ", kind)] = true
	}
	for _, o := range outcomes {
		kind := cmp.Or(o.kind, typeOf[o.status])
		if kind == "" {
			t.Errorf("%v becomes a %d without a type", o.err, o.status)
		}
		there[fmt.Sprint(o.status, " ", kind)] = true
	}
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(there)), slices.Sorted(maps.Keys(documented))); diff != "" {
		t.Errorf("types of problems (- in the code, + in docs/rest.md):\n%s", diff)
	}
}
