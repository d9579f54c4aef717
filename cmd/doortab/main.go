// Command doortab settles what shoppers take from unmanned vending cabinets.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"doortab/auditlog"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	go interrupt(stop)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// sameSignal is how close two signals are one: some tools send theirs to a process and to its group.
const sameSignal = time.Second

// interrupt ends the work in order at the first signal, and the program at once at a second one: nothing that is settled
// depends on an orderly end.
func interrupt(stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	<-signals
	stop()
	for first := time.Now(); time.Since(first) < sameSignal; {
		<-signals
	}
	_, _ = fmt.Fprintln(os.Stderr, "doortab: stopped at once by a second signal; nothing was compared or audited")
	os.Exit(1)
}

// errFound makes the exit status 1 for what was printed already: an audit's violations.
var errFound = errors.New("differences found")

// run is the whole program: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	exited := -1
	var command commandLine
	parser, err := kong.New(&command,
		kong.Name("doortab"),
		kong.Description("Settlement backend for unmanned vending cabinets: one closed door, one order."),
		kong.DefaultEnvars("DOORTAB"),
		kong.Vars{"version": version()},
		kong.UsageOnError(),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exited = code }),
		kong.Bind(&console{stdout, stderr}),
	)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "doortab:", err)
		return 1
	}
	parsed, err := parser.Parse(args)
	if exited >= 0 { // --help, --version
		return exited
	}
	if err == nil {
		err = checkRanges(parsed)
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "doortab: %v (try `%s --help`)\n", err, asked(parsed, err))
		return 2
	}
	parsed.BindTo(auditlog.WithActor(ctx, "command"), (*context.Context)(nil))
	err = parsed.Run()
	if err != nil && !errors.Is(err, errFound) {
		_, _ = fmt.Fprintln(stderr, "doortab:", err)
	}
	if err != nil {
		return 1
	}
	return 0
}

// asked is the command that was asked for, as far as it was understood.
func asked(parsed *kong.Context, err error) string {
	if failed, ok := errors.AsType[*kong.ParseError](err); ok {
		parsed = failed.Context
	}
	if node := parsed.Selected(); node != nil {
		return node.FullPath()
	}
	return "doortab"
}

// console is where a command prints: results to out, progress and logs to log.
type console struct {
	out io.Writer
	log io.Writer
}

func (c *console) printf(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }
