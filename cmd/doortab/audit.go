package main

import (
	"context"

	"doortab/audit"
	"doortab/database"
)

type auditCommand struct{ databaseFlags }

// Run is called by the command line.
func (a *auditCommand) Run(ctx context.Context, c *console) error {
	return a.withSchema(ctx, c, func(db *database.DB) error {
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
