package database_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"doortab/database"
)

func TestClassesOfServerErrors(t *testing.T) {
	t.Parallel()
	for class, numbers := range map[database.Class][]uint16{
		database.Retry: {
			1213, 1205, 3572, 1020, 9007, 8005, 8002, 8022, 8027, 8028, 1053, 1317, 1927, 1290, 1792, 1836, 1412, 1615,
		},
		database.BackPressure: {1040, 1203, 1226, 1021, 1114, 3, 1041, 1047, 1044, 1045, 1049, 1130, 1142, 1146, 1054},
		database.Permanent:    {1062, 1064, 1264, 1366, 1406, 1048, 3819, 4025, 65535},
	} {
		for _, number := range numbers {
			t.Run(fmt.Sprintf("%d is %s", number, class), func(t *testing.T) {
				t.Parallel()
				err := fmt.Errorf("settle 1001/e1: %w", &mysql.MySQLError{Number: number})
				if got := database.ClassOf(err); got != class {
					t.Errorf("class %s", got)
				}
			})
		}
	}
}

func TestClassesOfOtherErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		want database.Class
	}{
		{"another writer was first", database.ErrConflict, database.Retry},
		{"bad connection", driver.ErrBadConn, database.Retry},
		{"invalid connection", mysql.ErrInvalidConn, database.Retry},
		{"out of step", mysql.ErrPktSync, database.Retry},
		{"malformed packet", mysql.ErrMalformPkt, database.Retry},
		{"end of stream", io.EOF, database.Retry},
		{"torn stream", io.ErrUnexpectedEOF, database.Retry},
		{"broken pipe", syscall.EPIPE, database.Retry},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, database.Retry},
		{"no answer in time", &net.OpError{Op: "read", Err: timeout{}}, database.Retry},
		{"connection given back", sql.ErrConnDone, database.Retry},
		{"transaction ended", sql.ErrTxDone, database.Retry},
		{"cancelled", context.Canceled, database.BackPressure},
		{"out of time", context.DeadlineExceeded, database.BackPressure},
		{"final, of a conflict", database.Final(database.ErrConflict), database.Retry},
		{"nothing known", errors.New("no idea"), database.Permanent},
		{"no row", gorm.ErrRecordNotFound, database.Permanent},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := database.ClassOf(fmt.Errorf("settle 1001/e1: %w", c.err)); got != c.want {
				t.Errorf("class %s, not %s", got, c.want)
			}
		})
	}
}

type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func TestDuplicateKeyIsTold(t *testing.T) {
	t.Parallel()
	db, _ := counters(t)
	err := db.Read(t.Context()).Exec("INSERT INTO counters (id, n) VALUES (1, 1)").Error
	if !database.IsDuplicate(err) || database.ClassOf(err) != database.Permanent {
		t.Errorf("%v: duplicate %t, class %s", err, database.IsDuplicate(err), database.ClassOf(err))
	}
	if database.IsDuplicate(database.ErrConflict) || database.IsDuplicate(nil) {
		t.Error("other errors are duplicates too")
	}
}

func TestClassNames(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(database.Permanent, database.Retry, database.Unknown, database.BackPressure)
	if got != "permanent retry unknown back_pressure" {
		t.Error(got)
	}
}
