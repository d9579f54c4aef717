package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// prepared keeps statements that are run again and again. database/sql prepares each on every connection that runs it.
type prepared struct {
	pool       *sql.DB
	statements sync.Map // text to *sql.Stmt; nil: wanted
}

// transaction is a transaction that knows the prepared statements of its pool.
type transaction struct {
	*sql.Tx
	prepared *prepared
}

// execPrepared runs a statement of a fixed text. Inside a transaction of [DB.InTx] it is a prepared one from the second time on.
func execPrepared(tx *gorm.DB, statement string, args []any) (changed int64, err error) {
	if inside, known := knownStatement(tx, statement); known != nil {
		return exec(tx, preparedPool{inside, known}, statement, args)
	}
	return exec(tx, tx.Statement.ConnPool, statement, args)
}

// queryPrepared is execPrepared for a statement that reads.
func queryPrepared(tx *gorm.DB, statement string, args ...any) (*sql.Rows, error) {
	ctx := tx.Statement.Context
	if inside, known := knownStatement(tx, statement); known != nil {
		return inside.StmtContext(ctx, known).QueryContext(ctx, args...) //nolint:sqlclosecheck // the end of the transaction closes it
	}
	return tx.Statement.ConnPool.QueryContext(ctx, statement, args...)
}

// knownStatement is nil where the statement is not prepared; inside a transaction of [DB.InTx] it is wanted then.
func knownStatement(tx *gorm.DB, statement string) (transaction, *sql.Stmt) {
	inside, ok := tx.Statement.ConnPool.(transaction)
	if !ok {
		return inside, nil
	}
	known, _ := inside.prepared.statements.LoadOrStore(statement, (*sql.Stmt)(nil))
	return inside, known.(*sql.Stmt)
}

// preparedPool runs its one statement.
type preparedPool struct {
	transaction
	statement *sql.Stmt
}

func (p preparedPool) ExecContext(ctx context.Context, _ string, args ...any) (sql.Result, error) {
	return p.StmtContext(ctx, p.statement).ExecContext(ctx, args...) //nolint:sqlclosecheck // the end of the transaction closes it
}

// prepare prepares what is wanted. It takes a connection of its own, so whoever calls it holds none: all could be held by
// callers that wait for one more. What the server refuses to prepare is run as it is.
func (p *prepared) prepare(ctx context.Context) (err error) {
	p.statements.Range(func(text, known any) bool {
		if known.(*sql.Stmt) != nil {
			return true
		}
		fresh, failed := p.pool.PrepareContext(ctx, text.(string))
		if refused := new(mysql.MySQLError); errors.As(failed, &refused) {
			return true
		}
		if failed != nil {
			err = fmt.Errorf("prepare: %w", failed)
			return false
		}
		if !p.statements.CompareAndSwap(text, (*sql.Stmt)(nil), fresh) {
			err = fresh.Close() //nolint:sqlclosecheck // another was first
		}
		return err == nil
	})
	return err
}

func (p *prepared) close() (err error) {
	p.statements.Range(func(_, known any) bool {
		if statement := known.(*sql.Stmt); statement != nil {
			err = statement.Close()
		}
		return err == nil
	})
	return err
}
