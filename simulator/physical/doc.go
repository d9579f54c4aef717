// Package physical simulates what happens in a cabinet behind its door, down to the single unit: its true weight, its tag,
// scales that tremble and drift, antennas that miss, shoppers who put things back in the wrong lane, swap, leave their own
// things and drink half, restockers who miscount. It knows the truth, has the product's evidence judge what scales, tags
// and cameras saw of it, and reports how often that was wrong.
package physical
