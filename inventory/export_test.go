package inventory

// Kept counts what a view keeps.
func (v *View) Kept() (products, planograms int) { return len(v.articles), len(v.planograms) }
