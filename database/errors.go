package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
)

// Class says what a caller does about an error of the database.
type Class int

const (
	// Permanent errors come again on every try: a constraint, a syntax error, a value out of range.
	Permanent Class = iota
	// Retry errors rolled the transaction back, or must: run the whole of it again.
	Retry
	// Unknown means that COMMIT was sent and its answer lost. Run again from the insert of
	// the key, on a new connection; only a duplicate key tells that it went through.
	Unknown
	// BackPressure means that the server takes no work now: keep the input, slow down.
	BackPressure
)

// String returns the class's name as metrics and logs show it.
func (c Class) String() string {
	return [...]string{"permanent", "retry", "unknown", "back_pressure"}[c]
}

// The numbers are MySQL's, MariaDB's and TiDB's server error codes.
const (
	errDuplicateKey = 1062
	errLockWait     = 1205
	errLockNoWait   = 3572 // MySQL's answer to NOWAIT; MariaDB gives 1205
)

var classOf = map[uint16]Class{
	1213: Retry,              // deadlock; at COMMIT a Galera certification failure
	1205: Retry, 3572: Retry, // a row stayed locked
	1020: Retry,              // MariaDB: record has changed since last read
	1412: Retry, 1615: Retry, // table definition changed
	1053: Retry, 1317: Retry, 1927: Retry, // shutdown or kill
	1290: Retry, 1792: Retry, 1836: Retry, // read-only after a failover; the driver drops the connection
	9007: Retry, 8005: Retry, 8002: Retry, 8022: Retry, 8027: Retry, 8028: Retry, // TiDB write conflicts
	1040: BackPressure, 1203: BackPressure, 1226: BackPressure, // too many connections
	1021: BackPressure, 1114: BackPressure, 3: BackPressure, 1041: BackPressure, // disk or memory full
	1047: BackPressure,                                                             // Galera: node not in the primary component
	1045: BackPressure, 1049: BackPressure, 1130: BackPressure, 1044: BackPressure, // an operator must mend access
	1142: BackPressure, 1146: BackPressure, 1054: BackPressure, // rights or schema: likewise, and no event's fault
}

// ClassOf tells what to do about err, which may be wrapped. An error of no known kind is Permanent.
func ClassOf(err error) Class {
	var unknown *commitError
	if errors.As(err, &unknown) {
		return Unknown
	}
	if errors.Is(err, ErrConflict) {
		return Retry
	}
	var unreachable *connectError
	if errors.As(err, &unreachable) {
		return BackPressure // whatever the server's reason: it is no event's fault
	}
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return classOf[my.Number]
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return BackPressure
	}
	if disconnected(err) {
		return Retry // the server rolls back what a lost connection had open
	}
	return Permanent
}

func disconnected(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, mysql.ErrPktSync) || errors.Is(err, mysql.ErrPktSyncMul) || errors.Is(err, mysql.ErrMalformPkt) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, sql.ErrTxDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		errors.As(err, &network)
}

// ErrConflict is what the caller of [DB.InTx] returns from its function when another writer
// was first: the transaction rolls back and runs again, reading afresh.
var ErrConflict = errors.New("another writer was first")

// IsDuplicate tells whether err is a violation of a primary or unique key (1062).
func IsDuplicate(err error) bool {
	return hasNumber(err, errDuplicateKey) || errors.Is(err, gorm.ErrDuplicatedKey)
}

// IsLockWait tells whether err says that a row stayed locked by somebody for [LockWait], or
// was locked where the statement asked not to wait.
func IsLockWait(err error) bool { return hasNumber(err, errLockWait) || hasNumber(err, errLockNoWait) }

func hasNumber(err error, number uint16) bool {
	var my *mysql.MySQLError
	return errors.As(err, &my) && my.Number == number
}

// commitError marks a COMMIT whose answer was lost.
type commitError struct{ cause error }

func (e *commitError) Error() string { return "commit: outcome unknown: " + e.cause.Error() }
func (e *commitError) Unwrap() error { return e.cause }

// connectError marks that no connection was to be had.
type connectError struct{ cause error }

func (e *connectError) Error() string { return "connect to the database: " + e.cause.Error() }
func (e *connectError) Unwrap() error { return e.cause }
