package main

import (
	"context"
	"fmt"
	"time"

	"doortab/archive"
	"doortab/database"
)

type archiveCommand struct {
	databaseFlags
	Before moment        `required:"" placeholder:"DATE" help:"The first moment that stays live: 2026-01-31 (UTC), or 2026-01-31T06:00:00+08:00."`
	Batch  int           `default:"500" min:"1" max:"10000" help:"Rows that one step moves at most, in one transaction."`
	Pause  time.Duration `default:"20ms" min:"0s" max:"1m" help:"Wait after each step, which leaves the database to others."`
	DryRun bool          `help:"Count what would be moved, and move nothing."`
}

// Run is called by the command line.
func (a *archiveCommand) Run(ctx context.Context, c *console) error {
	if a.Before.at.After(time.Now()) {
		return fmt.Errorf("--before %s: that is still to come, give a day or a moment that is past", a.Before.at.Format(time.RFC3339))
	}
	options := archive.Options{Before: a.Before.at, Batch: a.Batch, Pause: a.Pause, Progress: newProgressLines(c).tell}
	return a.withSchema(ctx, c, func(db *database.DB) error {
		if a.DryRun {
			pending, err := archive.Pending(ctx, db, options)
			printCounts(c, pending, "to archive")
			return err
		}
		moved, err := archive.Run(ctx, db, options)
		printCounts(c, moved, "archived")
		return err
	})
}

func printCounts(c *console, counts []archive.Count, what string) {
	for _, n := range counts {
		c.printf("%-10s %12d %s\n", n.What, n.Rows, what)
	}
}

// progressEvery is how often somebody who watches hears how far it is.
const progressEvery = 2 * time.Second

// progressLines writes a line now and then, with the rate so far and the time that is left at that rate.
type progressLines struct {
	console *console
	what    string
	began   time.Time
	told    time.Time
}

func newProgressLines(c *console) *progressLines { return &progressLines{console: c} }

func (p *progressLines) tell(at archive.Progress) {
	now := time.Now()
	if at.What != p.what {
		p.what, p.began, p.told = at.What, now, now
	}
	if now.Sub(p.told) < progressEvery {
		return
	}
	p.told = now
	_, _ = fmt.Fprintln(p.console.log, progressLine(at, now.Sub(p.began)))
}

func progressLine(at archive.Progress, spent time.Duration) string {
	perSecond := float64(at.Moved) / spent.Seconds()
	line := fmt.Sprintf("%s: %d of %d, %.0f/s", at.What, at.Moved, at.Total, perSecond)
	if left := at.Total - at.Moved; left > 0 && perSecond > 0 {
		line += fmt.Sprintf(", %s left", time.Duration(float64(left)/perSecond*float64(time.Second)).Round(time.Second))
	}
	return line
}
