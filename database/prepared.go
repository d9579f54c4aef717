package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// transaction is a transaction that knows its connection.
type transaction struct {
	*sql.Tx
	conn     *sql.Conn
	frequent context.Context // of its statements that each connection prepares once, of which there must be few
}

type frequentKey struct{}

func begun(ctx context.Context, tx *sql.Tx, conn *sql.Conn) transaction {
	return transaction{tx, conn, context.WithValue(ctx, frequentKey{}, true)}
}

type statement interface {
	driver.StmtExecContext
	driver.StmtQueryContext
}

// prepared is a statement as the driver has it. database/sql would copy the thousands of values of a large group three times, to check
// what its callers have made right.
type prepared interface {
	statement
	Exec(values []driver.Value) (driver.Result, error)
}

// errNotPrepared is what a server says that has no room for another prepared statement, or prepares none of this kind.
var errNotPrepared = errors.New("statement is not prepared")

// fewValues is how many values are left to gorm and database/sql on their way to a prepared statement: those of [fewRows].
const fewValues = 64

// execPrepared runs a statement that each connection prepares once, since a server parses a long one for longer than it takes to run
// it, and a short one for a third of that. Outside of [DB.InTx], or where the server prepares it not, the text goes with its values in it.
func execPrepared(tx *gorm.DB, text string, values []driver.Value) (changed int64, err error) {
	inside, ok := tx.Statement.ConnPool.(transaction)
	if ok && len(values) > fewValues {
		changed, err = inside.exec(text, values)
		if !errors.Is(err, errNotPrepared) {
			return changed, err
		}
	}
	args := make([]any, len(values))
	for i, value := range values {
		args[i] = value
	}
	if ok && len(values) <= fewValues {
		tx = tx.WithContext(inside.frequent)
	}
	return exec(tx, text, args)
}

// exec keeps its error from [sql.Conn.Raw]: where that hears that the connection is gone, it waits until nobody uses it, and so for
// the end of this very transaction. Its rollback finds out by itself.
func (t transaction) exec(text string, values []driver.Value) (changed int64, err error) {
	failed := t.conn.Raw(func(raw any) error {
		changed, err = raw.(*conn).exec(text, values)
		return nil
	})
	return changed, errors.Join(err, failed)
}

// exec runs a statement on the connection, whose transaction is open.
func (c *conn) exec(text string, values []driver.Value) (changed int64, err error) {
	s, err := c.prepared(text)
	if err != nil {
		return 0, err
	}
	result, err := s.Exec(values)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c *conn) prepared(text string) (prepared, error) {
	if s, known := c.statements[text]; known {
		return s, nil
	}
	fresh, err := c.Prepare(text)
	if refused := new(mysql.MySQLError); errors.As(err, &refused) {
		return nil, fmt.Errorf("%w: %w", errNotPrepared, err)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	s, ok := fresh.(prepared)
	if !ok {
		return nil, errors.Join(errNotPrepared, fresh.Close())
	}
	c.statements[text] = s
	return s, nil
}

// exec runs a statement that is made already, with its parameters as the driver takes them: gorm would go through the text of
// a large group byte by byte to find them.
func exec(tx *gorm.DB, text string, args []any) (changed int64, err error) {
	made := tx.Raw("")
	made.Statement.SQL.WriteString(text)
	made.Statement.Vars = args
	done := made.Callback().Raw().Execute(made)
	return done.RowsAffected, done.Error
}
