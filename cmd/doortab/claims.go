package main

import (
	"cmp"
	"log/slog"
	"time"

	"doortab/claims"
)

// countersFlag says which Redis holds the counters of promotions.
type countersFlag struct {
	ClaimsRedisURL string `name:"claims-redis-url" placeholder:"URL" help:"Redis of promotions' counters where it isn't that of --redis-url; a cluster is redis://[:password@]host:port?addr=host:port&addr=host:port."` //nolint:lll // a tag can't be broken
}

// openClaims starts what takes claims of promotions.
func (n *node) openClaims() (err error) {
	if n.counters, err = openCounters(n.countersURL(), n.installation, 0, n.log); err != nil {
		return err
	}
	n.claims = claims.New(claims.Config{DB: n.db, Redis: n.counters, Logger: n.log, Metrics: n.registry})
	return nil
}

func (n *node) countersURL() string { return cmp.Or(n.config.ClaimsRedisURL, n.config.RedisURL) }

// openCounters returns nil where there is no Redis. Budget is how long a round trip may take; 0 for what shoppers bear.
func openCounters(url, installation string, budget time.Duration, log *slog.Logger) (*claims.Redis, error) {
	if url == "" {
		return nil, nil
	}
	return claims.OpenRedis(claims.RedisConfig{URL: url, Installation: installation, Budget: budget, Logger: log})
}
