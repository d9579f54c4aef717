package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"doortab/admin"
	"doortab/audit"
	"doortab/database"
	"doortab/migrations"
	"doortab/services"
	"doortab/simulator"
)

// devResend makes resends happen within a run of seconds.
const devResend = 2 * time.Second

type devCommand struct {
	fleetFlags
	limitFlags
	DataDir     string `placeholder:"DIR" help:"Folder of the private services; it stays. A temporary one where it is missing."`
	NoSimulator bool   `help:"Serve without simulated cabinets."`
	HTTPAddr    string `name:"http-addr" default:"127.0.0.1:0" help:"Address of the REST API; port 0 takes a free one."`
	MQTTListen  string `name:"mqtt-listen" default:"127.0.0.1:0" help:"Address of the embedded broker; port 0 takes a free one."`
	Currency    string `default:"CNY" help:"ISO 4217 code of every price."`
	LogLevel    string `enum:"debug,info,warn,error" default:"error" help:"Least level that is logged: ${enum}."`

	served bool // everything was ready
}

// devReady is the first line that dev prints.
type devReady struct {
	HTTP       string `json:"http"`
	MQTT       string `json:"mqtt"`
	DSN        string `json:"dsn"`
	Redis      string `json:"redis"`
	AdminToken string `json:"adminToken"`
}

// exports is a line for another shell, in which curl and the commands then find this Doortab.
func (r devReady) exports() string {
	quoted := func(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }
	return "export API=" + quoted(r.HTTP) + " TOKEN=" + quoted(r.AdminToken) + " DOORTAB_DATABASE_DSN=" + quoted(r.DSN) +
		" DOORTAB_REDIS_URL=" + quoted(r.Redis) + " DOORTAB_MQTT=" + quoted(r.MQTT)
}

// Run is called by the command line. Interrupted before anything was served, it ends as any
// interrupted run does: with the verdict.
func (d *devCommand) Run(ctx context.Context, c *console) error {
	result, err := d.start(ctx, c)
	if err != nil && ctx.Err() != nil && !d.served {
		result, err = simulator.Result{}, nil
	}
	if err != nil {
		return err
	}
	if err := result.WriteVerdict(c.out); err != nil {
		return err
	}
	if !result.Clean() {
		return errFound
	}
	return nil
}

func (d *devCommand) start(ctx context.Context, c *console) (result simulator.Result, err error) {
	log := newLogger(c, d.LogLevel)
	_, _ = fmt.Fprintln(c.log, "Starting private MariaDB and Redis …")
	group, err := services.Start(ctx, services.Options{
		Dir: d.DataDir, MariaDB: &services.MariaDBOptions{}, Redis: &services.RedisOptions{}, Logger: log,
	})
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, group.Stop(context.WithoutCancel(ctx))) }()
	ready := devReady{DSN: group.MariaDB.DSN("doortab"), Redis: group.Redis.URL()}
	if err := d.prepare(ctx, group.MariaDB.DSN("mysql"), ready.DSN); err != nil {
		return result, err
	}
	return d.serve(ctx, c, log, ready)
}

// prepare makes the schema.
func (d *devCommand) prepare(ctx context.Context, serverDSN, dsn string) error {
	server, err := database.Open(database.Config{DSN: serverDSN, Pool: 1})
	if err != nil {
		return err
	}
	_, err = server.SQL().ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS doortab CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
	if err = errors.Join(err, server.Close()); err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	db, err := database.Open(database.Config{DSN: dsn, Pool: 2})
	if err != nil {
		return err
	}
	_, err = migrations.Up(ctx, db)
	return errors.Join(err, db.Close())
}

func (d *devCommand) serve(ctx context.Context, c *console, log *slog.Logger, ready devReady) (simulator.Result, error) {
	n, err := startNode(ctx, nodeConfig{
		DatabaseDSN: ready.DSN, RedisURL: ready.Redis, MQTTListen: d.MQTTListen, HTTPAddr: d.HTTPAddr, Currency: d.Currency,
		limitFlags: d.limitFlags,
	}, log)
	if err != nil {
		return simulator.Result{}, err
	}
	result, err := d.useNode(ctx, c, log, n, ready)
	return result, errors.Join(err, n.stop(ctx))
}

// useNode prints where everything is, lets the fleet or somebody else use it, and audits.
func (d *devCommand) useNode(ctx context.Context, c *console, log *slog.Logger, n *node, ready devReady) (simulator.Result, error) {
	token, err := admin.CreateToken(ctx, n.db, "dev", admin.Admin)
	if err != nil {
		return simulator.Result{}, err
	}
	ready.HTTP, ready.MQTT, ready.AdminToken = n.httpURL(), n.mqttURL(), token.Secret
	if err := n.awaitReady(ctx); err != nil {
		return simulator.Result{}, err
	}
	d.served = true
	if err := c.json(ready); err != nil {
		return simulator.Result{}, err
	}
	c.printf("Try the API at %s/docs with the token above; metrics at %s/metrics.\n", ready.HTTP, ready.HTTP)
	result, err := d.work(ctx, c, log, n, ready)
	if err != nil {
		return result, err
	}
	report, err := runAudit(context.WithoutCancel(ctx), n.db, n.config.RedisURL)
	if err != nil {
		return result, err
	}
	return withAudit(result, report), report.Print(c.out)
}

func (d *devCommand) work(ctx context.Context, c *console, log *slog.Logger, n *node, ready devReady) (simulator.Result, error) {
	if d.NoSimulator {
		c.printf("Paste this line into another terminal, and curl and the commands of doortab find it there:\n%s\n", ready.exports())
		return d.waitForEnd(ctx, c, n)
	}
	config := d.config(c, log)
	config.BaseURL, config.BrokerURL, config.Token = ready.HTTP, ready.MQTT, ready.AdminToken
	config.FirstResend = devResend
	result, err := simulate(ctx, config)
	if err != nil {
		return result, err
	}
	return result, result.WriteDetails(c.out)
}

// waitForEnd prints one status line a second until the time is over.
func (d *devCommand) waitForEnd(ctx context.Context, c *console, n *node) (simulator.Result, error) {
	if d.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Duration)
		defer cancel()
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			n.drain(ctx)
			return n.counts()
		case err := <-n.failed:
			return simulator.Result{}, err
		case <-tick.C:
			counts, err := n.counts()
			if err != nil {
				return counts, err
			}
			c.printf("received %d settled %d duplicates %d review %d\n",
				counts.Published, counts.Settled, counts.Duplicates, counts.Review)
		}
	}
}

// withAudit adds what the audit found to what the fleet's own books found: where a violation doesn't say which of the three it
// is, its invariant does.
func withAudit(result simulator.Result, report audit.Report) simulator.Result {
	for _, check := range report.Checks {
		result.Lost += check.Lost
		result.Doubled += check.Doubled
		switch others := check.Total - check.Lost - check.Doubled; check.Name {
		case "I1", "I5":
			result.Lost += others
		case "I2", "I4", "I6":
			result.Drift += others
		default:
			result.Doubled += others
		}
	}
	return result
}

// awaitReady waits until database and broker answer.
func (n *node) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := n.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready within 30 s: %w", err)
		case err := <-n.failed:
			return err
		case <-tick.C:
		}
	}
}

// counts reads what the node did so far from its own metrics.
func (n *node) counts() (simulator.Result, error) {
	families, err := n.registry.Gather()
	if err != nil {
		return simulator.Result{}, fmt.Errorf("read metrics: %w", err)
	}
	result := simulator.Result{Published: n.received.Load()}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			value := int64(metric.GetCounter().GetValue())
			switch {
			case family.GetName() == "doortab_repeats_total":
				result.Duplicates += value
			case family.GetName() != "doortab_settlements_total":
			case metric.GetLabel()[0].GetValue() == "review":
				result.Review += value
			case metric.GetLabel()[0].GetValue() != "conflict":
				result.Settled += value
			}
		}
	}
	return result, nil
}
