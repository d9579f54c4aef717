//go:build !race

package physical_test

// guardedDoors are enough for a fault of the rules to show, not for the promised figures themselves.
const guardedDoors = 20000
