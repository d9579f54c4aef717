package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/go-sql-driver/mysql"

	"doortab/database"
	"doortab/services"
)

// Lab is the place of one run: private services in a temporary folder, and the sizes of the work.
type Lab struct {
	sizes

	program  string // this program's own file, for the parts that start it as a process
	server   services.MariaDBOptions
	servers  *services.Group // MariaDB and Redis
	others   []*services.Group
	admin    *database.DB // for schemas and the server's counters
	schemas  int
	wireCrew int // best number of workers of the usual design behind a broker, once it is known
	progress io.Writer
	log      *slog.Logger

	position string    // of the part among those that run, for the progress
	started  time.Time // of the run
}

// sizes are how much a run works with.
type sizes struct {
	cabinets int
	window   int           // what `doortab serve` lets a broker send without an acknowledgement
	slices   int           // turns of each design
	slice    time.Duration // length of a turn
	search   time.Duration // length of a try of one number of workers of the usual design
	probes   int           // events by which the core's own cost is counted
	// grown cabinets with pastOfEach events behind each are the full database of the part growth.
	grown, pastOfEach int
	crowd             int64 // users who press for a promotion
	scripts           int   // that redis-benchmark runs
	behind                  // a broker
}

// behind is the sizes of the parts that work through a broker.
type behind struct {
	outstanding  int // events without a receipt while throughput is measured
	strolls      int // turns of each design while latency is measured
	strollEvents int // events of such a turn
	backlog      int
	known        int           // cabinets whose events and statuses a process has seen
	connected    int           // of them connected to the embedded broker
	idle         time.Duration // from their connecting to the look at the memory
}

// window is the MQTT client's own default.
const window = 4096

func sizesOf(o Options) sizes {
	s := sizes{
		cabinets: 1000, window: window, slices: 5, slice: 4 * time.Second, search: 2 * time.Second, probes: 20_000,
		grown: 100_000, pastOfEach: 20, crowd: crowdUsers, scripts: 200_000,
	}
	s.behind = behind{
		outstanding: 2000, strolls: 5, strollEvents: 500, backlog: 200_000, known: 100_000, connected: 5000, idle: 20 * time.Second,
	}
	if o.Quick {
		s.behind = behind{
			outstanding: 1000, strolls: 3, strollEvents: 100, backlog: 10_000, known: 5000, connected: 500, idle: 2 * time.Second,
		}
		s.slices, s.slice, s.search, s.probes, s.grown = 3, time.Second, 300*time.Millisecond, 1000, 2500
		s.crowd, s.scripts = 2000, 20_000
	}
	if o.Seconds > 0 {
		s.slice = time.Duration(o.Seconds * float64(time.Second) / float64(s.slices))
		s.strollEvents = max(1, int(o.Seconds*calm)/s.strolls)
	}
	return s
}

// serverOf is as services start it, a commit on disk before it is answered, with memory for the data of the largest part and
// a redo log that no slice fills.
func serverOf(o Options) services.MariaDBOptions {
	if o.Quick {
		return services.MariaDBOptions{BufferPoolMiB: 512, LogMiB: 512}
	}
	return services.MariaDBOptions{BufferPoolMiB: 1024, LogMiB: 1024}
}

func newLab(o Options) *Lab {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	log := slog.New(slog.NewTextHandler(o.Progress, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return &Lab{
		sizes: sizesOf(o), program: o.Program, server: serverOf(o), progress: o.Progress, log: log, started: time.Now(),
	}
}

// start runs the services. Whoever starts a Lab closes it.
func (l *Lab) start(ctx context.Context) (err error) {
	l.say("starting private MariaDB and Redis")
	l.servers, err = services.Start(ctx, services.Options{MariaDB: &l.server, Redis: &services.RedisOptions{}, Logger: l.log})
	if err != nil {
		return err
	}
	l.admin, err = database.Open(database.Config{DSN: l.servers.MariaDB.DSN("mysql"), Pool: 2, Logger: l.log, AnswerWait: time.Hour})
	if err != nil {
		return errors.Join(err, l.close(ctx))
	}
	return nil
}

func (l *Lab) close(ctx context.Context) error {
	var errs []error
	if l.admin != nil {
		errs = append(errs, l.admin.Close())
	}
	for _, group := range append(l.others, l.servers) {
		errs = append(errs, group.Stop(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}

// mosquitto starts a broker for one part; it runs until the Lab closes.
func (l *Lab) mosquitto(ctx context.Context, o services.MosquittoOptions) (*services.Mosquitto, error) {
	group, err := services.Start(ctx, services.Options{Mosquitto: &o, Logger: l.log})
	if err != nil {
		return nil, err
	}
	l.others = append(l.others, group)
	return group.Mosquitto, nil
}

// schema makes an empty database of a name of its own and returns its DSN.
func (l *Lab) schema(ctx context.Context, of string) (dsn string, err error) {
	l.schemas++
	name := fmt.Sprintf("%s_%d", of, l.schemas)
	if _, err := l.admin.SQL().ExecContext(ctx, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"); err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return l.servers.MariaDB.DSN(name), nil
}

// drop removes a database, so that the next part finds the server's memory free.
func (l *Lab) drop(ctx context.Context, dsn string) error {
	settings, err := mysql.ParseDSN(dsn)
	if err != nil {
		return fmt.Errorf("drop a database: %w", err)
	}
	name := settings.DBName
	if _, err := l.admin.SQL().ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+name); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func (l *Lab) begin(p part, number, of int) {
	l.position = fmt.Sprintf("%d/%d %s: ", number, of, p.name)
	l.say("%s", p.about)
}

// say prints a line of progress.
func (l *Lab) say(format string, args ...any) {
	elapsed := time.Since(l.started).Round(100 * time.Millisecond).Seconds()
	_, _ = fmt.Fprintf(l.progress, "%6.1f s  %s%s\n", elapsed, l.position, fmt.Sprintf(format, args...))
}
