package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
)

// conn is a connection that begins transactions without a round trip, with the statements that it has prepared; they end
// with it.
type conn struct {
	driverConn

	statements map[string]prepared
	// manual: autocommit is off, so that the server begins a transaction with the first statement. It stays off from one
	// transaction to the next, until a statement comes that belongs to none.
	manual bool
	open   bool // a transaction is
}

// driverConn is what database/sql asks a connection for, and go-sql-driver's offers.
type driverConn interface {
	driver.Conn
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// BeginTx sends nothing where the last thing that the connection did was a transaction too.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if o != (driver.TxOptions{}) {
		if err := c.turn(ctx, false); err != nil {
			return nil, err
		}
		return c.driverConn.BeginTx(ctx, o)
	}
	if err := c.turn(ctx, true); err != nil {
		return nil, err
	}
	c.open = true
	return ending{c}, nil
}

func (c *conn) turn(ctx context.Context, manual bool) error {
	if c.manual == manual {
		return nil
	}
	statement := "SET autocommit = 1"
	if manual {
		statement = "SET autocommit = 0"
	}
	if _, err := c.driverConn.ExecContext(ctx, statement, nil); err != nil {
		return err
	}
	c.manual = manual
	return nil
}

// outside makes what belongs to no transaction commit by itself. DO takes and leaves named locks, which no transaction ends.
func (c *conn) outside(ctx context.Context, text string) error {
	if c.open || strings.HasPrefix(text, "DO ") {
		return nil
	}
	return c.turn(ctx, false)
}

// ExecContext is [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(ctx, args)
}

// QueryContext is [driver.QueryerContext].
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args)
}

// statement is a prepared one where it comes often and the server prepares it, else its text.
func (c *conn) statement(ctx context.Context, text string) (statement, error) {
	if err := c.outside(ctx, text); err != nil {
		return nil, err
	}
	if ctx.Value(frequentKey{}) == nil {
		return unprepared{c.driverConn, text}, nil
	}
	s, err := c.prepared(text)
	if errors.Is(err, errNotPrepared) {
		return unprepared{c.driverConn, text}, nil
	}
	return s, err
}

// unprepared is a statement that goes as text.
type unprepared struct {
	on   driverConn
	text string
}

// ExecContext is [driver.StmtExecContext].
func (u unprepared) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return u.on.ExecContext(ctx, u.text, args)
}

// QueryContext is [driver.StmtQueryContext].
func (u unprepared) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return u.on.QueryContext(ctx, u.text, args)
}

// PrepareContext is [driver.ConnPrepareContext]. What it returns must be run where it was prepared: in a transaction or in none.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if err := c.outside(ctx, text); err != nil {
		return nil, err
	}
	return c.driverConn.PrepareContext(ctx, text)
}

// ending ends the open transaction of a connection.
type ending struct{ *conn }

// Commit is [driver.Tx].
func (e ending) Commit() error { return e.end("COMMIT") }

// Rollback is [driver.Tx].
func (e ending) Rollback() error { return e.end("ROLLBACK") }

func (e ending) end(statement string) error {
	e.open = false
	if !e.IsValid() {
		return fmt.Errorf("%s: %w", statement, driver.ErrBadConn)
	}
	_, err := e.driverConn.ExecContext(context.Background(), statement, nil)
	return err
}
