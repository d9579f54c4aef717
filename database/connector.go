package database

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// connector sets what has no portable system variable: MariaDB 10.11 knows tx_isolation,
// MySQL 8 transaction_isolation, both know the statement.
type connector struct{ driver.Connector }

const readCommitted = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	opened, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	inner, ok := opened.(driverConn)
	if !ok {
		return nil, errors.Join(errors.New("database driver lacks what is needed of it: use go-sql-driver/mysql"), opened.Close())
	}
	if _, err := inner.ExecContext(ctx, readCommitted, nil); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &conn{driverConn: inner, statements: map[string]prepared{}}, nil
}

func settingsFor(dsn string, answerWait time.Duration) (*mysql.Config, error) {
	if dsn == "" {
		return nil, errors.New("no database: give --database-dsn or DOORTAB_DATABASE_DSN, such as user:password@tcp(127.0.0.1:3306)/doortab")
	}
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		// The driver's text may quote the DSN, which holds a password.
		return nil, errors.New("database DSN cannot be read: write it as user:password@tcp(host:port)/schema")
	}
	if c.DBName == "" {
		return nil, errors.New("database DSN names no schema: end it in /doortab")
	}
	c.ParseTime = true
	c.Loc = time.UTC
	c.InterpolateParams = true
	c.MultiStatements = false
	c.RejectReadOnly = true
	c.Timeout = 5 * time.Second
	c.ReadTimeout = answerWait
	c.WriteTimeout = answerWait
	c.Logger = silent{}
	if c.Params == nil {
		c.Params = map[string]string{}
	}
	c.Params["time_zone"] = "'+00:00'"
	c.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE'"
	c.Params["innodb_lock_wait_timeout"] = strconv.Itoa(int(LockWait / time.Second))
	c.Params["lock_wait_timeout"] = strconv.Itoa(int(TableWait / time.Second))
	if err := c.Apply(mysql.TimeTruncate(time.Millisecond), mysql.Charset("utf8mb4", "utf8mb4_bin")); err != nil {
		return nil, fmt.Errorf("database settings: %w", err)
	}
	return c, nil
}

// silent drops the driver's own log lines: each error it logs is also returned.
type silent struct{}

func (silent) Print(...any) {}
