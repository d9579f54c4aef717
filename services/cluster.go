package services

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sync/errgroup"
)

// ClusterOptions chooses what a Redis cluster is made of.
type ClusterOptions struct {
	// Masters is how many processes share the slots; 3, the least that a cluster needs, where it is 0.
	Masters int
}

// Cluster is a private Redis cluster of masters without replicas, with one password.
type Cluster struct {
	// Masters are its processes. One that is killed takes its slots along until it is started again.
	Masters []*Redis
}

func newCluster(f *folder, o ClusterOptions, logger *slog.Logger) *Cluster {
	c := &Cluster{}
	password := rand.Text()
	for n := range max(o.Masters, 3) {
		of := RedisOptions{AppendOnly: true, cluster: true, password: password}
		c.Masters = append(c.Masters, newRedis(f, fmt.Sprintf("redis-%d", n+1), of, logger))
	}
	return c
}

// URL is the addresses with the password, for go-redis's ParseClusterURL: redis://:secret@127.0.0.1:port?addr=127.0.0.1:port
func (c *Cluster) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", c.Masters[0].password), Host: c.Masters[0].address}
	others := url.Values{}
	for _, master := range c.Masters[1:] {
		others.Add("addr", master.address)
	}
	u.RawQuery = others.Encode()
	return u.String()
}

func (c *Cluster) create(ctx context.Context) error {
	starts, startCtx := errgroup.WithContext(ctx)
	for _, master := range c.Masters {
		starts.Go(func() error { return master.create(startCtx) })
	}
	if err := starts.Wait(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, StartLimit)
	defer cancel()
	if err := c.join(ctx); err != nil {
		return fmt.Errorf("join the masters of a Redis cluster: %w", err)
	}
	return poll(ctx, c.answers)
}

// join gives each master its share of the slots and lets them know each other.
func (c *Cluster) join(ctx context.Context) error {
	args := []string{"--cluster", "create"}
	for _, master := range c.Masters {
		args = append(args, master.address)
	}
	out, err := c.cli(ctx, append(args, "--cluster-replicas", "0", "--cluster-yes")...)
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLines(out))
	}
	return nil
}

// answers tells whether every master sees all slots served.
func (c *Cluster) answers(ctx context.Context) error {
	for _, master := range c.Masters {
		host, port, _ := strings.Cut(master.address, ":")
		out, err := c.cli(ctx, "-h", host, "-p", port, "CLUSTER", "INFO")
		if err != nil {
			return err
		}
		if !strings.Contains(out, "cluster_state:ok") {
			return fmt.Errorf("%s sees a cluster that isn't complete", master.name)
		}
	}
	return nil
}

// cli runs redis-cli with the password in its environment, where other users don't see it.
func (c *Cluster) cli(ctx context.Context, args ...string) (string, error) {
	name, err := program("redis-cli")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // found by name
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+c.Masters[0].password)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *Cluster) stop(ctx context.Context) error {
	var errs []error
	for _, master := range c.Masters {
		errs = append(errs, master.Stop(ctx))
	}
	return errors.Join(errs...)
}
