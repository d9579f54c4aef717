package main

import (
	"doortab/simulator/physical"
)

// evidenceCommand measures how often the evidence charges wrongly, against shelves whose truth
// is known.
type evidenceCommand struct {
	Doors int `default:"200000" min:"1000" max:"1000000000" help:"Simulated doors of each kind of cabinet and seed."`
}

// Run is called by the command line.
func (e *evidenceCommand) Run(c *console) error {
	_, met, err := physical.MeasureAll(physical.Config{}, e.Doors, c.out, c.log)
	if err != nil {
		return err
	}
	if !met {
		return errFound
	}
	return nil
}
