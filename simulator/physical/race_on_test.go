//go:build race

package physical_test

// guardedDoors under the race detector, which makes everything ten times slower.
const guardedDoors = 3000
