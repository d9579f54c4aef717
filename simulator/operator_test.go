package simulator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"doortab/cabinet"
)

func TestAnOperatorDecidesByTheTruth(t *testing.T) {
	t.Parallel()
	one, two := []quantity{{7, 1}}, []quantity{{7, 2}}
	tests := map[string]struct {
		review          reviewRow
		truth, standing []quantity
		restock         bool
		said            string
		lines           []quantity
	}{
		"what is sure is right":        {reviewRow{Proposed: one}, one, one, false, "waive", nil},
		"what is proposed is right":    {reviewRow{Proposed: one}, two, one, false, "accept", one},
		"neither is":                   {reviewRow{Proposed: one}, two, nil, false, "amend", two},
		"nothing was taken":            {reviewRow{Proposed: one}, nil, one, false, "amend", nil},
		"other content under its id":   {reviewRow{Reasons: []cabinet.Reason{cabinet.ReasonConflict}}, two, one, false, "accept", nil},
		"a restock shows nothing sure": {reviewRow{Proposed: one}, two, nil, true, "amend", two},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said, d := tt.review.decide(&entry{truth: tt.truth, restock: tt.restock}, tt.standing)
			if diff := cmp.Diff(tt.lines, d.lines); said != tt.said || d.amend != (said == "amend") || diff != "" {
				t.Errorf("%s, want %s; lines (-want +got):\n%s", said, tt.said, diff)
			}
			if said == "amend" {
				if diff := cmp.Diff(toMap(tt.truth), toMap(fromMap(merged(toMap(tt.standing), d.changes(toMap(tt.standing)))))); diff != "" {
					t.Errorf("it comes to something else than the truth (-want +got):\n%s", diff)
				}
			}
		})
	}
}
