package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"doortab/database"
	"doortab/spreadsheet"
)

type importCommand struct {
	Products   importProducts   `cmd:"" help:"Add and change products as a CSV file says, all of it or nothing."`
	Planograms importPlanograms `cmd:"" help:"Replace the planograms of the cabinets that a CSV file names, all of them or none."`
}

type exportCommand struct {
	Products   exportProducts   `cmd:"" help:"Write the catalogue as CSV."`
	Planograms exportPlanograms `cmd:"" help:"Write all planograms as CSV."`
}

// inputFile is the argument that names a file to read.
type inputFile struct {
	File string `arg:"" help:"A CSV file; - is standard input."`
}

func (f inputFile) read(do func(io.Reader) error) error {
	if f.File == "-" {
		return do(os.Stdin)
	}
	file, err := os.Open(f.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := do(file); err != nil {
		return fmt.Errorf("%s: %w", f.File, err)
	}
	return nil
}

// outputFile is the argument that names a file to write.
type outputFile struct {
	File string `arg:"" optional:"" default:"-" help:"Where to; - is standard output."`
}

// write writes the file when its whole content is known, so that a failure leaves what was there.
func (f outputFile) write(c *console, do func(io.Writer) error) error {
	var content bytes.Buffer
	if err := do(&content); err != nil {
		return err
	}
	if f.File == "-" {
		_, err := c.out.Write(content.Bytes())
		return err
	}
	return os.WriteFile(f.File, content.Bytes(), 0o644) //nolint:gosec // a price list, for whom the user's umask lets read it
}

// importFlags say which file goes into which database.
type importFlags struct {
	databaseFlags
	inputFile
}

func (f *importFlags) load(ctx context.Context, c *console, do func(*database.DB, io.Reader) error) error {
	return f.withSchema(ctx, c, func(db *database.DB) error {
		return f.read(func(from io.Reader) error { return do(db, from) })
	})
}

type importProducts struct{ importFlags }

// Run is called by the command line.
func (i *importProducts) Run(ctx context.Context, c *console) error {
	return i.load(ctx, c, func(db *database.DB, from io.Reader) error {
		done, err := spreadsheet.ReadProducts(ctx, db, from)
		if err == nil {
			c.printf("products: %d added, %d changed, %d unchanged\n", done.Added, done.Changed, done.Unchanged)
		}
		return err
	})
}

type importPlanograms struct{ importFlags }

// Run is called by the command line.
func (i *importPlanograms) Run(ctx context.Context, c *console) error {
	return i.load(ctx, c, func(db *database.DB, from io.Reader) error {
		done, err := spreadsheet.ReadPlanograms(ctx, db, from)
		if err == nil {
			c.printf("planograms: %d changed, %d unchanged\n", done.Changed, done.Unchanged)
		}
		return err
	})
}

type exportProducts struct {
	databaseFlags
	outputFile
}

// Run is called by the command line.
func (e *exportProducts) Run(ctx context.Context, c *console) error {
	return e.withSchema(ctx, c, func(db *database.DB) error {
		return e.write(c, func(to io.Writer) error { return spreadsheet.WriteProducts(ctx, db, to) })
	})
}

type exportPlanograms struct {
	databaseFlags
	outputFile
}

// Run is called by the command line.
func (e *exportPlanograms) Run(ctx context.Context, c *console) error {
	return e.withSchema(ctx, c, func(db *database.DB) error {
		return e.write(c, func(to io.Writer) error { return spreadsheet.WritePlanograms(ctx, db, to) })
	})
}
