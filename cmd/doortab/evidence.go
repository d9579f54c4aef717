package main

import (
	"errors"

	"doortab/simulator/physical"
)

// evidenceCommand measures how often the evidence charges wrongly, against shelves whose truth
// is known.
type evidenceCommand struct {
	Doors int `default:"200000" help:"Simulated doors of each kind of cabinet and seed."`
}

// Run is called by the command line.
func (e *evidenceCommand) Run(c *console) error {
	if e.Doors < 1000 {
		return errors.New("--doors: give 1000 or more, fewer say nothing of one wrong order in thousands")
	}
	_, met, err := physical.MeasureAll(physical.Config{}, e.Doors, c.out, c.log)
	if err != nil {
		return err
	}
	if !met {
		return errFound
	}
	return nil
}
