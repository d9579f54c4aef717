package cabinet_test

import (
	"encoding/json"
	"testing"

	"doortab/cabinet"
)

// Evidence has one form, whichever way writes it: what is stored is compared and read back by both.
func TestEvidenceAsJSON(t *testing.T) {
	t.Parallel()
	plain := cabinet.Evidence{Source: cabinet.SourceItems, Rule: cabinet.RuleCabinetCount, Quantity: 2, Confidence: 0.98}
	with := func(change func(e *cabinet.Evidence)) cabinet.Evidence {
		e := plain
		change(&e)
		return e
	}
	for name, e := range map[string]cabinet.Evidence{
		"plain":               plain,
		"nothing":             {},
		"sure":                with(func(e *cabinet.Evidence) { e.Confidence = 1 }),
		"small confidence":    with(func(e *cabinet.Evidence) { e.Confidence = 0.000012 }),
		"smallest confidence": with(func(e *cabinet.Evidence) { e.Confidence = 5e-324 }),
		"long confidence":     with(func(e *cabinet.Evidence) { e.Confidence = 1.0 / 3 }),
		"no source":           with(func(e *cabinet.Evidence) { e.Source = "" }),
		"units back":          with(func(e *cabinet.Evidence) { e.Quantity = -3 }),
		"lanes":               with(func(e *cabinet.Evidence) { e.Lanes = []cabinet.LaneEvidence{{Lane: 3, BeforeGrams: 500}} }),
		"tags":                with(func(e *cabinet.Evidence) { e.EPCs = []string{"3036142C8C008F8000053244"} }),
		"counts":              with(func(e *cabinet.Evidence) { e.Counts = &cabinet.Counts{ProductID: 7} }),
		"moves":               with(func(e *cabinet.Evidence) { e.Moves = []cabinet.Moved{{FromLane: 1, ToLane: 2, Grams: 3}} }),
	} {
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(e.JSON()); got != string(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
