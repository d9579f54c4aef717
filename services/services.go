// Package services runs private MariaDB, Redis and Mosquitto servers: real processes in a folder of their own, on free ports
// and sockets, apart from whatever the machine has installed.
//
// It promises that a service answers before Start returns, that a commit is on disk before MariaDB answers it, and that no
// process and no temporary folder stays behind: not after Stop, and not when the program that started them is killed, for
// which a small watchdog process of its own session stands by. A folder that was given stays, and serves the next start,
// also after a kill. The services run in process groups of their own, so that Ctrl-C at a terminal reaches only the program.
//
// It needs Linux, since it finds processes by /proc.
package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
)

// StartLimit bounds how long one service may take until it answers; recovery after a kill included.
const StartLimit = 2 * time.Minute

// StopLimit bounds how long one service may take to end in good order before it is killed.
const StopLimit = 30 * time.Second

// Options says which services to run and where. A service whose options are nil isn't run.
type Options struct {
	// Dir is the folder to run in, made when it is missing; empty means a temporary one.
	Dir string
	// MariaDB, Redis and Mosquitto choose the services.
	MariaDB   *MariaDBOptions
	Redis     *RedisOptions
	Mosquitto *MosquittoOptions
	// Cluster asks for a Redis cluster.
	Cluster *ClusterOptions
	// Logger gets a line for each start and end; nil means none.
	Logger *slog.Logger
}

// Group is a set of running services that share a folder. The services that weren't asked for are nil.
type Group struct {
	MariaDB   *MariaDB
	Redis     *Redis
	Mosquitto *Mosquitto
	Cluster   *Cluster

	folder *folder
}

// Start runs the services that o names and returns when each of them answers. When one doesn't, all are stopped again, and the
// error holds the last lines of its log. A context that ends breaks the start off; it doesn't stop services that run.
func Start(ctx context.Context, o Options) (*Group, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f, err := openFolder(ctx, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start services: %w", err)
	}
	g := &Group{folder: f}
	if err := g.start(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start services in %s: %w", f.dir, err), g.Stop(context.WithoutCancel(ctx)))
	}
	return g, nil
}

func (g *Group) start(ctx context.Context, o Options) error {
	starts, ctx := errgroup.WithContext(ctx)
	if o.MariaDB != nil {
		g.MariaDB = newMariaDB(g.folder, *o.MariaDB, o.Logger)
		starts.Go(func() error { return g.MariaDB.create(ctx) })
	}
	if o.Redis != nil {
		g.Redis = newRedis(g.folder, "redis", *o.Redis, o.Logger)
		starts.Go(func() error { return g.Redis.create(ctx) })
	}
	if o.Mosquitto != nil {
		g.Mosquitto = newMosquitto(g.folder, *o.Mosquitto, o.Logger)
		starts.Go(func() error { return g.Mosquitto.create(ctx) })
	}
	if o.Cluster != nil {
		g.Cluster = newCluster(g.folder, *o.Cluster, o.Logger)
		starts.Go(func() error { return g.Cluster.create(ctx) })
	}
	return starts.Wait()
}

// Dir is the folder that the services run in, as an absolute path without symbolic links.
func (g *Group) Dir() string { return g.folder.dir }

// Stop ends the broker, then Redis, then MariaDB, and removes what was temporary. Each gets StopLimit, or until ctx ends, to
// end in good order, and is killed after that, which the error then says. A second Stop does nothing.
func (g *Group) Stop(ctx context.Context) error {
	var errs []error
	if g.Mosquitto != nil {
		errs = append(errs, g.Mosquitto.Stop(ctx))
	}
	if g.Cluster != nil {
		errs = append(errs, g.Cluster.stop(ctx))
	}
	if g.Redis != nil {
		errs = append(errs, g.Redis.Stop(ctx))
	}
	if g.MariaDB != nil {
		errs = append(errs, g.MariaDB.Stop(ctx))
	}
	return errors.Join(append(errs, g.folder.close())...)
}
