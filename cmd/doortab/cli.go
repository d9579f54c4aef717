package main

import (
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	"doortab/database"
)

// commandLine is the whole of doortab's commands. Each flag has an environment variable
// DOORTAB_ and its name.
type commandLine struct {
	Version kong.VersionFlag `env:"-" help:"Print the version and the commit that this program was built from, and end."`

	Serve       serveCommand       `cmd:"" help:"Settle events and serve the REST API."`
	Dev         devCommand         `cmd:"" help:"Try everything: private services, a demonstration fleet, an audit at the end."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the database schema up or down, or show its state."`
	Simulate    simulateCommand    `cmd:"" help:"Run simulated cabinets against a serving doortab and compare the books."`
	Evidence    evidenceCommand    `cmd:"" help:"Measure wrong charges and reviews of scales, tags and counts on shelves whose truth is known."`
	Bench       benchCommand       `cmd:"" help:"Measure Doortab beside the usual design, on private services."`
	BenchUsual  benchUsualCommand  `cmd:"" name:"bench-usual" hidden:""`
	Audit       auditCommand       `cmd:"" help:"Check the invariants of the books; exit status 1 on any violation."`
	Reconcile   reconcileCommand   `cmd:"" help:"Compare the counters of promotions and reservations with what they count; exit status 1 on what stays."`
	Archive     archiveCommand     `cmd:"" help:"Move what is old to archive tables while serving; run it again where it was stopped."`
	Token       tokenCommand       `cmd:"" help:"API tokens."`
	Cabinet     cabinetCommand     `cmd:"" help:"Cabinets."`
	Promotion   promotionCommand   `cmd:"" help:"Promotions: products at a special price."`
	Mosquitto   mosquittoCommand   `cmd:"" help:"Mosquitto as the broker."`
	Import      importCommand      `cmd:"" help:"Read products or planograms from CSV."`
	Export      exportCommand      `cmd:"" help:"Write products or planograms as CSV."`
	DeadLetters deadLettersCommand `cmd:"" name:"dead-letters" help:"Messages that could not be settled and wait for somebody."`
	FailedTasks failedTasksCommand `cmd:"" name:"failed-tasks" help:"Delayed tasks that failed again and again and wait for somebody."`
}

// version is what the Go toolchain knows of this build: a tag, or the commit and its time; "(devel)" without a repository.
func version() string {
	build, known := debug.ReadBuildInfo()
	if !known {
		return "doortab (devel)"
	}
	return "doortab " + build.Main.Version + " " + build.GoVersion
}

// commandAnswerWait is how long a command may wait for one statement: altering or reading a
// large table takes its time, and somebody watches.
const commandAnswerWait = 6 * time.Hour

// databaseFlags reach the database.
type databaseFlags struct {
	DatabaseDSN string `name:"database-dsn" placeholder:"DSN" help:"MySQL or MariaDB: user:password@tcp(host:port)/schema."`
	LogLevel    string `enum:"debug,info,warn,error" default:"info" help:"Least level that is logged: ${enum}."`
}

func (f *databaseFlags) open(log *slog.Logger) (*database.DB, error) {
	return database.Open(database.Config{DSN: f.DatabaseDSN, AnswerWait: commandAnswerWait, Logger: log})
}

func (f *databaseFlags) logger(c *console) *slog.Logger { return newLogger(c, f.LogLevel) }

func newLogger(c *console, level string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: least}))
}
