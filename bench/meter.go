package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"doortab/database"
)

// What the server counts. Innodb_data_fsyncs holds those of the redo log too: MariaDB 10.11 counts them nowhere else.
var counters = map[string]string{
	"Innodb_data_fsyncs":    "fsyncs",
	"Innodb_data_written":   "written_bytes", // pages, each twice for the doublewrite buffer, and redo log
	"Innodb_os_log_written": "redo_bytes",
	"Questions":             "statements", // BEGIN and COMMIT included
}

// meter adds up what the events of one side cost the server and this process.
type meter struct {
	events int64
	costs  map[string]float64
}

func newMeter() *meter { return &meter{costs: map[string]float64{}} }

// around adds what work cost, and the number of events that it returns.
func (m *meter) around(ctx context.Context, l *Lab, work func() (int64, error)) error {
	before, err := l.costs(ctx)
	if err != nil {
		return err
	}
	n, err := work()
	if err != nil {
		return err
	}
	after, err := l.costs(ctx)
	if err != nil {
		return err
	}
	m.events += n
	for name, cost := range after {
		m.costs[name] += cost - before[name]
	}
	return nil
}

// perEvent writes each cost as a detail, divided by the number of events.
func (m *meter) perEvent(details map[string]float64, prefix string) {
	for name, cost := range m.costs {
		details[prefix+name+"_per_settlement"] = ratio(cost, float64(m.events))
	}
}

// costs are what the server and this process have spent since they began.
func (l *Lab) costs(ctx context.Context) (map[string]float64, error) {
	costs := map[string]float64{}
	rows, err := l.admin.SQL().QueryContext(ctx, "SHOW GLOBAL STATUS")
	if err != nil {
		return nil, fmt.Errorf("read the server's counters: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, fmt.Errorf("read the server's counters: %w", err)
		}
		if cost, wanted := counters[name]; wanted {
			if costs[cost], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, fmt.Errorf("read the server's %s: %w", name, err)
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the server's counters: %w", err)
	}
	return costs, l.processors(costs)
}

// processors adds the microseconds that the two programs had a processor for.
func (l *Lab) processors(costs map[string]float64) error {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return fmt.Errorf("read the processor time: %w", err)
	}
	costs["program_us"] = float64((own.Utime.Nano() + own.Stime.Nano()) / int64(time.Microsecond))
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", l.servers.MariaDB.PID()))
	if err != nil {
		return fmt.Errorf("read the server's processor time: %w", err)
	}
	costs["mariadb_us"], err = processorTime(string(stat))
	return err
}

// processorTime reads utime and stime, the 14th and 15th fields of proc_pid_stat(5), in microseconds: hundredths of a second
// there. The name before them may hold any character, and ends with the last parenthesis.
func processorTime(stat string) (float64, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("processor time: %q has too few fields", stat)
	}
	total := 0.0
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("processor time: %w", err)
		}
		total += ticks * 1e4
	}
	return total, nil
}

// tableBytes is what the tables of a database take on disk, indexes included.
func tableBytes(ctx context.Context, db *database.DB) (bytes float64, err error) {
	var tables []string
	if err := db.Read(ctx).Raw("SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&tables).Error; err != nil {
		return 0, fmt.Errorf("list the tables: %w", err)
	}
	// The sizes that the server tells are those of its last analysis.
	if err := db.Read(ctx).Exec("ANALYZE TABLE " + strings.Join(tables, ", ")).Error; err != nil {
		return 0, fmt.Errorf("analyse the tables: %w", err)
	}
	err = db.Read(ctx).Raw(`SELECT CAST(SUM(data_length + index_length) AS DOUBLE) FROM information_schema.tables
		WHERE table_schema = DATABASE()`).Scan(&bytes).Error
	if err != nil {
		return 0, fmt.Errorf("read the size of the tables: %w", err)
	}
	return bytes, nil
}
