package bench

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample() Report {
	met := part{name: "settle", goals: []goal{
		{label: "settle ÷ usual design", value: byRatio, must: 8, aim: 15},
		{label: "fsyncs per settlement", value: byDetail("fsyncs"), must: 0.05, aim: 0.01, most: true},
	}}
	missed := part{name: "hot", goals: []goal{{label: "hot ÷ usual design", value: byRatio, must: 20, aim: 30}}}
	return Report{results: []result{
		{met, Figure{16000, 1000, 16, "settlements/s", map[string]float64{"fsyncs": 0.02}}},
		{missed, Figure{1500.4, 123.456, 12.15, "settlements/s", map[string]float64{}}},
	}}
}

func TestTableShowsEachFigureAndHowFarEachGoalIsMet(t *testing.T) {
	t.Parallel()
	want := `
figure                   Doortab  usual design  ratio    must     aim  met
settle, settlements/s      16000          1000     16
  settle ÷ usual design       16                          ≥ 8    ≥ 15  yes
  fsyncs per settlement     0.02                       ≤ 0.05  ≤ 0.01  below the aim
hot, settlements/s          1500           123   12.2
  hot ÷ usual design        12.2                         ≥ 20    ≥ 30  below what it must
`
	if diff := cmp.Diff(want, "\n"+write(t, sample().WriteTable)); diff != "" {
		t.Error(diff)
	}
}

func TestTableOfAQuickRunSaysSo(t *testing.T) {
	t.Parallel()
	r := sample()
	r.Quick = true
	if text := write(t, r.WriteTable); !strings.Contains(text, "Quick: short slices") {
		t.Errorf("not said in %s", text)
	}
}

func TestJSONIsOneObjectWithAMemberForEachPartInOrder(t *testing.T) {
	t.Parallel()
	want := `{"settle":{"doortab":16000,"usual":1000,"ratio":16,"unit":"settlements/s","details":{"fsyncs":0.02}},` +
		`"hot":{"doortab":1500.4,"usual":123.456,"ratio":12.15,"unit":"settlements/s","details":{}}}` + "\n"
	if diff := cmp.Diff(want, write(t, sample().WriteJSON)); diff != "" {
		t.Error(diff)
	}
}

func write(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var text strings.Builder
	if err := write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
