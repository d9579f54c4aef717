package main

import (
	"context"
	"time"

	"doortab/database"
	"doortab/reconcile"
)

// reconcileFlags say how serve reconciles.
type reconcileFlags struct {
	ReconcileEvery  time.Duration `default:"5m" min:"0s" max:"24h" help:"How often counters are compared with what they count; 0 for never."`
	ReconcileRepair bool          `help:"Let these comparisons mend what is proven."`
}

func (n *node) reconcile(ctx context.Context) {
	reconcile.New(reconcile.Config{
		DB: n.db, Every: n.config.ReconcileEvery, Repairs: n.config.ReconcileRepair, Logger: n.log, Metrics: n.registry,
	}).Serve(ctx)
}

type reconcileCommand struct {
	databaseFlags
	Repair bool `help:"Mend what is proven."`
}

// Run is called by the command line.
func (r *reconcileCommand) Run(ctx context.Context, c *console) error {
	return r.withSchema(ctx, c, func(db *database.DB) error {
		service := reconcile.New(reconcile.Config{DB: db, Logger: r.logger(c)})
		run, err := service.Run(ctx, reconcile.Options{Origin: reconcile.Command, Everything: true, Repairs: r.Repair})
		if err != nil {
			return err
		}
		found, err := reconcile.ReadDifferences(ctx, db, run.RunID, int(run.Found))
		if err != nil {
			return err
		}
		for _, d := range found {
			c.printf("%s\n", d)
		}
		if more := run.Found - int64(len(found)); more > 0 {
			c.printf("and %d more\n", more)
		}
		c.printf("reconciliation %d: %d promotions, %d differences, %d repaired, %d buckets behind\n",
			run.RunID, run.Promotions, run.Found, run.Repaired, run.Behind)
		if run.Found > run.Repaired {
			return errFound
		}
		return nil
	})
}
