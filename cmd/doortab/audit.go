package main

import (
	"context"

	"doortab/audit"
	"doortab/database"
	"doortab/migrations"
)

type auditCommand struct{ databaseFlags }

// Run is called by the command line.
func (a *auditCommand) Run(ctx context.Context, c *console) error {
	return a.with(c, func(db *database.DB) error {
		if err := migrations.Check(ctx, db); err != nil {
			return err
		}
		report, err := audit.Run(ctx, db)
		if err != nil {
			return err
		}
		if err := report.Print(c.out); err != nil {
			return err
		}
		if !report.OK() {
			return errFound
		}
		return nil
	})
}
