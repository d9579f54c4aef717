package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"doortab/database"
	"doortab/reconcile"
	"doortab/settlement"
)

// reconcileFlags say how serve reconciles.
type reconcileFlags struct {
	ReconcileEvery  time.Duration `default:"5m" min:"0s" max:"24h" help:"How often counters are compared with what they count; 0 for never."`
	ReconcileRepair bool          `help:"Let these comparisons mend what is proven."`
}

// openReconciling prepares what compares, with a way of its own to the counters of promotions.
func (n *node) openReconciling() (err error) {
	if n.compared, err = openCounters(n.countersURL(), n.installation, countersBudget, n.log); err != nil {
		return err
	}
	n.compare = reconcile.New(reconcile.Config{
		DB: n.db, Redis: n.compared, Every: n.config.ReconcileEvery, Repairs: n.config.ReconcileRepair, Logger: n.log, Metrics: n.registry,
	})
	return nil
}

// countersBudget is how long reading all of one bucket may take.
const countersBudget = 5 * time.Second

type reconcileCommand struct {
	databaseFlags
	RedisURL string `name:"redis-url" placeholder:"URL" help:"Redis of the serving processes; without it only the database is compared."`
	countersFlag
	Repair bool `help:"Mend what is proven."`
}

// Run is called by the command line.
func (r *reconcileCommand) Run(ctx context.Context, c *console) error {
	return r.withSchema(ctx, c, func(db *database.DB) error {
		installation, err := settlement.Installation(ctx, db)
		if err != nil {
			return err
		}
		counters, err := openCounters(cmp.Or(r.ClaimsRedisURL, r.RedisURL), installation, countersBudget, r.logger(c))
		if err != nil {
			return err
		}
		if counters != nil {
			defer func() { _ = counters.Close() }()
		}
		service := reconcile.New(reconcile.Config{DB: db, Redis: counters, Logger: r.logger(c)})
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
		if run.Behind > 0 {
			return fmt.Errorf("%d buckets of counters were not compared: look at Redis and at the log of serve, then run it again", run.Behind)
		}
		if run.Found > run.Repaired {
			return errFound
		}
		return nil
	})
}
