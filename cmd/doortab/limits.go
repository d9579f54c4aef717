package main

import (
	"context"
	"net/netip"

	"doortab/ratelimit"
)

// limitFlags say who may call how often.
type limitFlags struct {
	LimitUser    ratelimit.Limit `default:"10/s:100" help:"Opens and claims of one shopper: a rate, and how many at once; 0 for no limit."`
	LimitAddress ratelimit.Limit `default:"0" placeholder:"N/s:M" help:"The same from one address; off by default."`
	LimitToken   ratelimit.Limit `default:"0" placeholder:"N/s:M" help:"Calls with one API token; off by default."`
	TrustedProxy []netip.Prefix  `placeholder:"CIDR" help:"Networks of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8."`
}

func (n *node) openLimits(ctx context.Context) (err error) {
	n.limits, err = ratelimit.New(ratelimit.Config{
		User: n.config.LimitUser, Address: n.config.LimitAddress, Token: n.config.LimitToken,
		RedisURL: n.config.RedisURL, Installation: n.installation, Logger: n.log, Metrics: n.registry,
	})
	if err != nil {
		return err
	}
	n.limits.Check(ctx)
	return nil
}
