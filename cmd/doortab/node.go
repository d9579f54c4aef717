package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"doortab/admin"
	"doortab/archive"
	"doortab/certificate"
	"doortab/claims"
	"doortab/database"
	"doortab/door"
	"doortab/fleet"
	"doortab/intake"
	"doortab/migrations"
	"doortab/mqtt"
	"doortab/ratelimit"
	"doortab/reconcile"
	"doortab/reservation"
	"doortab/settlement"
	"doortab/tasks"
)

const (
	// drainLimit is how long a stopping node waits for messages in hand and receipts on their way.
	drainLimit = 6 * time.Second
	// endLimit is how long it then waits for its parts: a database that hangs would hold them for longer.
	endLimit = 2500 * time.Millisecond
)

// nodeConfig says what one serving process is made of.
type nodeConfig struct {
	DatabaseDSN  string `name:"database-dsn" placeholder:"DSN" help:"MySQL or MariaDB: user:password@tcp(host:port)/schema."`
	DatabasePool int    `default:"16" min:"2" max:"10000" help:"Connections to the database."`
	RedisURL     string `name:"redis-url" placeholder:"URL" help:"Redis: redis://[:password@]host:port/0. Without it the database does everything."`
	MQTTURL      string `name:"mqtt-url" placeholder:"URL" help:"Broker: mqtt://host:1883 or mqtts://host:8883. Without it an embedded broker serves."`
	MQTTUsername string `name:"mqtt-username" help:"This process's user name at the broker of --mqtt-url."`
	MQTTPassword string `name:"mqtt-password" help:"Its password."`
	MQTTCAFile   string `name:"mqtt-ca-file" placeholder:"FILE" help:"PEM file of the authority behind an mqtts broker; else the system's."`
	MQTTShare    string `name:"mqtt-share" default:"doortab" placeholder:"GROUP" help:"Group of the workers' shared subscription."`
	MQTTHook     string `name:"mqtt-hook-secret" placeholder:"SECRET" help:"What an external broker sends to /mqtt/auth and /mqtt/acl; off without it."`
	MQTTListen   string `name:"mqtt-listen" default:":1883" help:"Address of the embedded broker."`
	MQTTTLSCert  string `name:"mqtt-tls-cert" placeholder:"FILE" help:"PEM file of the embedded broker's certificate; it is read anew when it changes."`
	MQTTTLSKey   string `name:"mqtt-tls-key" placeholder:"FILE" help:"PEM file of its key."`
	HTTPAddr     string `name:"http-addr" default:"127.0.0.1:8080" help:"Address of the REST API."`
	HTTPTLSCert  string `name:"http-tls-cert" placeholder:"FILE" help:"PEM file of the API's certificate; it is read anew when it changes."`
	HTTPTLSKey   string `name:"http-tls-key" placeholder:"FILE" help:"PEM file of its key."`
	PprofAddr    string `name:"pprof-addr" placeholder:"ADDR" help:"Loopback address for Go's profiles, under /debug/pprof/; off without it."`
	Currency     string `default:"CNY" help:"ISO 4217 code of every price."`
	Workers      int    `default:"0" min:"0" max:"1000" help:"Groups of events settled at one time; 0: one more than processors, from 3 to 8."`
	MaxGroup     int    `default:"1000" min:"1" max:"10000" help:"Events in one group."`
	limitFlags

	GapPatience time.Duration `default:"1m" min:"100ms" max:"24h" help:"How long a missing event of a cabinet is waited for before the log tells of it."`
	retentionFlags
	countersFlag
	reconcileFlags
	Instance string `placeholder:"NAME" help:"Names this process among others on one broker; default host name and HTTP port."`
}

// node is one serving process: REST, broker or client of one, intake, settlement.
type node struct {
	config   nodeConfig
	log      *slog.Logger
	db       *database.DB
	registry *prometheus.Registry
	received atomic.Int64 // door-closed messages

	installation string // keeps those apart that share a Redis

	remembered *settlement.Remembered
	settlement *settlement.Service
	claims     *claims.Service
	counters   *claims.Redis // of promotions; nil: the database decides all claims
	intake     *intake.Intake
	broker     *mqtt.Broker // nil with an external one
	events     *mqtt.Client
	receipts   *mqtt.Client
	statuses   *mqtt.Client
	client     mqtt.Config // what all clients have in common
	board      *fleet.StatusBoard
	doors      *door.Reports
	secrets    *fleet.Authenticator
	limits     *ratelimit.Limiter
	compare    *reconcile.Service
	compared   *claims.Redis // nil: off
	tasks      *tasks.Queue
	tasksLeft  bool // some still ran at the end
	rest       *admin.Server
	listener   net.Listener
	profiles   net.Listener // nil: off

	intakeJobs jobs
	otherJobs  jobs
	failed     chan error // a part that ended by itself
}

// startNode opens everything and starts working. Whoever gets a node stops it.
func startNode(ctx context.Context, config nodeConfig, log *slog.Logger) (*node, error) {
	if !currencyCode.MatchString(config.Currency) {
		return nil, fmt.Errorf("currency %q: give an ISO 4217 code such as CNY or EUR", config.Currency)
	}
	if err := config.checkBroker(); err != nil {
		return nil, err
	}
	if err := config.checkRetention(); err != nil {
		return nil, err
	}
	n := &node{config: config, log: log, registry: prometheus.NewRegistry(), failed: make(chan error, 1)}
	n.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(err, n.close())
	}
	if err := n.start(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

var currencyCode = regexp.MustCompile(`^[A-Z]{3}$`)

func (n *node) open(ctx context.Context) (err error) {
	if n.db, err = database.Open(database.Config{DSN: n.config.DatabaseDSN, Pool: n.config.DatabasePool, Logger: n.log}); err != nil {
		return err
	}
	if err = n.db.Ping(ctx); err != nil {
		return err
	}
	if err = migrations.Check(ctx, n.db); err != nil {
		return err
	}
	if err = n.listen(); err != nil {
		return err
	}
	if err = n.openSettlement(ctx); err != nil {
		return err
	}
	if err = n.openClaims(); err != nil {
		return err
	}
	if err = n.openMQTT(); err != nil {
		return err
	}
	n.measureMQTT()
	if err = n.openLimits(ctx); err != nil {
		return err
	}
	if err = n.openReconciling(); err != nil {
		return err
	}
	n.measureBreakers()
	n.registry.MustRegister(fleet.NewPresence(n.db, n.log))
	if n.tasks, err = openTasks(n.config.RedisURL, n.installation, n.db, n.claims, n.log, n.registry); err != nil {
		return err
	}
	n.rest = admin.New(admin.Config{ //nolint:contextcheck // its handlers have each request's own
		DB: n.db, Settlement: n.settlement, Claims: n.claims, Unlock: n.sendUnlock, Ready: n.ready, Metrics: n.registry,
		Currency: n.config.Currency, Tasks: n.tasks, Limits: n.limits, Proxies: n.config.proxies(), Logger: n.log,
		Hooks: admin.BrokerHooks{
			Secret: n.config.MQTTHook, Username: n.config.MQTTUsername, Password: n.config.MQTTPassword, Authenticate: n.secrets.Authenticate,
		},
	})
	return nil
}

func (n *node) listen() (err error) {
	secure, err := n.encryption("http", n.config.HTTPTLSCert, n.config.HTTPTLSKey)
	if err != nil {
		return err
	}
	if n.listener, err = net.Listen("tcp", n.config.HTTPAddr); err != nil {
		return fmt.Errorf("listen for REST (set --http-addr to a free address): %w", err)
	}
	if secure != nil {
		n.listener = tls.NewListener(n.listener, secure)
	}
	if n.config.PprofAddr != "" {
		n.profiles, err = listenForProfiles(n.config.PprofAddr)
	}
	return err
}

// encryption is nil where neither file is named.
func (n *node) encryption(of, certFile, keyFile string) (*tls.Config, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	files, err := certificate.Open(certFile, keyFile, n.log)
	if err != nil {
		return nil, fmt.Errorf("--%s-tls-cert and --%s-tls-key: %w", of, of, err)
	}
	return files.TLS(), nil
}

func (n *node) openSettlement(ctx context.Context) (err error) {
	if n.installation, err = settlement.Installation(ctx, n.db); err != nil {
		return err
	}
	if n.config.RedisURL != "" {
		if n.remembered, err = settlement.NewRemembered(n.config.RedisURL, n.installation, n.log); err != nil {
			return err
		}
		n.remembered.Check(ctx)
	}
	n.settlement = settlement.New(settlement.Config{
		DB: n.db, Remembered: n.remembered, Currency: n.config.Currency, Logger: n.log, Metrics: n.registry,
		GapPatience: n.config.GapPatience,
	})
	n.intake = intake.New(intake.Config{
		Settlement: n.settlement, Send: n.sendReceipt, Workers: n.config.Workers, MaxGroup: n.config.MaxGroup,
		Logger: n.log, Metrics: n.registry,
	})
	n.board = fleet.NewStatusBoard(n.db, n.log)
	n.doors = door.NewReports(n.db, n.log)
	n.secrets = fleet.NewAuthenticator(n.db, n.log)
	return nil
}

func (n *node) start() error {
	if err := n.tasks.Start(); err != nil {
		return err
	}
	n.otherJobs.start(n.board.Run)
	n.otherJobs.start(n.doors.Run)
	n.otherJobs.start(func(ctx context.Context) { door.KeepSwept(ctx, n.db, n.log) })
	n.otherJobs.start(func(ctx context.Context) { reservation.KeepSwept(ctx, n.db, n.log) })
	n.otherJobs.start(n.claims.KeepSwept)
	n.otherJobs.start(n.secrets.Run)
	n.otherJobs.start(n.settlement.WatchGaps)
	n.otherJobs.start(n.compare.Serve)
	n.otherJobs.start(archive.NewJanitor(n.db, n.config.retention(), n.log, n.registry).Run)
	if n.config.MQTTHook != "" {
		n.otherJobs.start(n.runEvictor)
	}
	if n.broker != nil {
		n.otherJobs.start(n.orFail(n.broker.Serve))
	}
	n.otherJobs.start(n.orFail(func(ctx context.Context) error { return n.rest.Serve(ctx, n.listener) }))
	if n.profiles != nil {
		n.otherJobs.start(n.orFail(func(ctx context.Context) error { return serveProfiles(ctx, n.profiles) }))
	}
	n.otherJobs.start(n.orFail(n.statuses.Run))
	n.otherJobs.start(n.orFail(n.receipts.Run))
	n.intakeJobs.start(n.intake.Run)
	n.otherJobs.start(n.orFail(n.events.Run))
	return nil
}

// orFail makes a part that ends by an error end the node.
func (n *node) orFail(part func(context.Context) error) func(context.Context) {
	return func(ctx context.Context) {
		if err := part(ctx); err != nil && ctx.Err() == nil {
			select {
			case n.failed <- err:
			default:
			}
		}
	}
}

// stuckLimit is how long events may wait for the database before the node calls itself unfit.
const stuckLimit = 5 * time.Second

// ready tells whether database and broker answer, and whether events can be written.
func (n *node) ready(ctx context.Context) error {
	if err := n.db.Ping(ctx); err != nil {
		return err
	}
	if stuck := n.intake.Stuck(); stuck > stuckLimit {
		return fmt.Errorf("events have been waiting for the database for %s: it answers but takes no writes "+
			"(check its disk, read_only and locks)", stuck.Round(time.Second))
	}
	if !n.events.Connected() || !n.receipts.Connected() {
		return errors.New("broker is not connected (check DOORTAB_MQTT_URL and the broker)")
	}
	return nil
}

// stop ends in the order that loses nothing: no more events, what is in hand settled and
// answered, then everything else. What a part that does not end has in hand is neither
// acknowledged nor answered.
func (n *node) stop(ctx context.Context) error {
	n.drain(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	settled, ended := n.intakeJobs.stop(ctx), n.otherJobs.stop(ctx)
	if !settled || !ended || n.tasksLeft {
		n.log.Warn("Stopped while the database held work up; cabinets will send again what is not answered.")
		return nil // closing would wait for the database too
	}
	return n.close()
}

// drain takes no more events and finishes those in hand. A second one does nothing.
func (n *node) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainLimit)
	defer cancel()
	var delayed sync.WaitGroup
	delayed.Go(func() { n.stopTasks(ctx) })
	defer delayed.Wait()
	if err := errors.Join(n.events.Drain(ctx), n.receipts.Drain(ctx)); err != nil {
		n.log.Warn("Stopped with messages in hand; their cabinets will send them again.", "error", err)
	}
}

func (n *node) close() error {
	var errs []error
	if n.listener != nil {
		_ = n.listener.Close() // the server has closed it where it served
	}
	if n.profiles != nil {
		_ = n.profiles.Close() // the same
	}
	if n.broker != nil {
		n.broker.Close()
	}
	if n.claims != nil {
		n.claims.Close()
	}
	if n.counters != nil {
		errs = append(errs, n.counters.Close())
	}
	if n.remembered != nil {
		errs = append(errs, n.remembered.Close())
	}
	if n.tasks != nil {
		errs = append(errs, n.tasks.Close()) // where the node did not start
	}
	if n.limits != nil {
		errs = append(errs, n.limits.Close())
	}
	if n.compared != nil {
		errs = append(errs, n.compared.Close())
	}
	if n.db != nil {
		errs = append(errs, n.db.Close())
	}
	return errors.Join(errs...)
}

func (n *node) httpURL() string {
	if n.config.HTTPTLSCert != "" {
		return "https://" + dialable(n.listener.Addr())
	}
	return "http://" + dialable(n.listener.Addr())
}

// dialable is where a client on this machine reaches a listener.
func dialable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if ip := net.ParseIP(host); err != nil || (ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr.String()
}

func (n *node) instance() string {
	if n.config.Instance != "" {
		return n.config.Instance
	}
	host, err := os.Hostname()
	if err != nil {
		host = "doortab"
	}
	_, port, _ := net.SplitHostPort(n.listener.Addr().String())
	return host + "-" + port
}
