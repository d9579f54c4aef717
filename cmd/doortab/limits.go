package main

import (
	"context"
	"fmt"
	"net/netip"

	"doortab/ratelimit"
)

// limitFlags say who may call how often.
type limitFlags struct {
	LimitUser    ratelimit.Limit `default:"10/s:100" help:"Opens and claims of one shopper: a rate, and how many at once; 0 for no limit."`
	LimitAddress ratelimit.Limit `default:"0" placeholder:"N/s:M" help:"The same from one address; off by default."`
	LimitToken   ratelimit.Limit `default:"0" placeholder:"N/s:M" help:"Calls with one API token; off by default."`
	TrustedProxy []network       `placeholder:"CIDR" help:"Networks of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8."`
}

// network is a flag's range of addresses.
type network netip.Prefix

// UnmarshalText reads a network as CIDR writes it.
func (n *network) UnmarshalText(text []byte) error {
	parsed, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("%q: write a network as 10.0.0.0/8, one address as 10.0.0.1/32", text)
	}
	*n = network(parsed)
	return nil
}

func (f limitFlags) proxies() []netip.Prefix {
	list := make([]netip.Prefix, len(f.TrustedProxy))
	for i, n := range f.TrustedProxy {
		list[i] = netip.Prefix(n)
	}
	return list
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
