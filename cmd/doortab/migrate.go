package main

import (
	"context"

	"doortab/database"
	"doortab/migrations"
)

type migrateCommand struct {
	Up     migrateUp     `cmd:"" help:"Apply what this program needs and the database lacks."`
	Down   migrateDown   `cmd:"" help:"Take the newest migration back, with the data in its tables."`
	Status migrateStatus `cmd:"" help:"List the migrations."`
}

type migrateUp struct{ databaseFlags }

// Run is called by the command line.
func (m *migrateUp) Run(ctx context.Context, c *console) error {
	return m.with(ctx, c, func(db *database.DB) error {
		applied, err := migrations.Up(ctx, db)
		for _, version := range applied {
			c.printf("applied %d\n", version)
		}
		if err == nil && len(applied) == 0 {
			c.printf("nothing to do\n")
		}
		return err
	})
}

type migrateDown struct{ databaseFlags }

// Run is called by the command line.
func (m *migrateDown) Run(ctx context.Context, c *console) error {
	return m.with(ctx, c, func(db *database.DB) error {
		version, err := migrations.Down(ctx, db)
		switch {
		case err != nil:
			return err
		case version == 0:
			c.printf("nothing to do\n")
		default:
			c.printf("took back %d\n", version)
		}
		return nil
	})
}

type migrateStatus struct{ databaseFlags }

// Run is called by the command line.
func (m *migrateStatus) Run(ctx context.Context, c *console) error {
	return m.with(ctx, c, func(db *database.DB) error {
		list, err := migrations.List(ctx, db)
		for _, s := range list {
			state := "pending"
			if s.Applied {
				state = "applied"
			}
			c.printf("%-8s %s\n", state, s.Name)
		}
		return err
	})
}

// with runs a command on the database and closes it.
func (f *databaseFlags) with(ctx context.Context, c *console, do func(*database.DB) error) error {
	db, err := f.open(f.logger(c))
	if err != nil {
		return err
	}
	if err = db.Ping(ctx); err == nil {
		err = do(db)
	}
	if closing := db.Close(); err == nil {
		err = closing
	}
	return err
}
