package bench

// goal is a figure that Doortab has set itself: what it must reach and what it aims at.
type goal struct {
	label string
	value func(Figure) float64
	must  float64
	aim   float64
	most  bool // the value should be no more than must and aim; else no less
}

func byRatio(f Figure) float64   { return f.Ratio }
func byDoortab(f Figure) float64 { return f.Doortab }

// byDetail is the value of a figure's detail.
func byDetail(name string) func(Figure) float64 {
	return func(f Figure) float64 { return f.Details[name] }
}

// verdict says in words how far a figure got.
func (g goal) verdict(f Figure) string {
	value := g.value(f)
	reached := func(limit float64) bool {
		if g.most {
			return value <= limit
		}
		return value >= limit
	}
	switch {
	case reached(g.aim):
		return "yes"
	case reached(g.must):
		return "below the aim"
	default:
		return "below what it must"
	}
}
