package database_test

import (
	"sync"
	"testing"

	"doortab/database"
)

// Among some thousands of random numbers of 22 bits two would be equal.
func TestAProcessMintsNoIDTwice(t *testing.T) {
	t.Parallel()
	const minters, each = 4, 50_000
	now := database.Now()
	var minted [minters][each]int64
	var all sync.WaitGroup
	for m := range minters {
		all.Go(func() {
			for n := range each {
				minted[m][n] = database.NewID(now)
			}
		})
	}
	all.Wait()
	seen := map[int64]bool{}
	for m := range minted {
		for _, id := range minted[m] {
			if seen[id] || id < database.FirstID(now) {
				t.Fatalf("%d was minted before, or is below the first of its millisecond", id)
			}
			seen[id] = true
		}
	}
}
