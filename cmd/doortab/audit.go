package main

import (
	"cmp"
	"context"

	"doortab/audit"
	"doortab/database"
)

type auditCommand struct {
	databaseFlags
	RedisURL string `name:"redis-url" placeholder:"URL" help:"Redis of the serving processes; without it only the database is checked."`
	countersFlag
}

// Run is called by the command line.
func (a *auditCommand) Run(ctx context.Context, c *console) error {
	return a.withSchema(ctx, c, func(db *database.DB) error {
		report, err := runAudit(ctx, db, cmp.Or(a.ClaimsRedisURL, a.RedisURL))
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

// runAudit also checks what promotions count in Redis, where there is one.
func runAudit(ctx context.Context, db *database.DB, redisURL string) (audit.Report, error) {
	if redisURL == "" {
		return audit.Run(ctx, db)
	}
	return audit.RunWithRedis(ctx, db, redisURL)
}
