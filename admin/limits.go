package admin

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
)

// byShopper is a request that a person makes one after the other: opening a door, reserving, an order token, a claim. It is limited by
// shopper and address too; every other one by its token alone.
type byShopper interface{ shopper() int64 }

// limitCalls refuses a token or an address that comes too often, before the request's body is read.
func (s *Server) limitCalls(opens bool) func(huma.Context, func(huma.Context)) {
	return func(c huma.Context, next func(huma.Context)) {
		request := humaecho.Unwrap(c).Request()
		err := s.limits.Token(c.Context(), principalOf(c.Context()).TokenID)
		if err == nil && opens {
			err = s.limits.Address(c.Context(), clientAddress(request, s.proxies))
		}
		if err != nil {
			s.fail(err, humaecho.Unwrap(c))
			return
		}
		next(c)
	}
}

// limitShopper refuses a shopper who comes too often, before any work, and before a repeat's first answer is looked up.
func (s *Server) limitShopper(ctx context.Context, in any) error {
	if call, limited := in.(byShopper); limited {
		return s.limits.User(ctx, call.shopper())
	}
	return nil
}

const forwardedHeader = "X-Forwarded-For"

// clientAddress is who connected, or, where that is one of our own proxies, who connected to it. Only what our proxies added
// is believed, from the right: anybody may send the header. IPv6 clients have a /64 at least, so that counts as one.
func clientAddress(r *http.Request, proxies []netip.Prefix) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	client := peer.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values(forwardedHeader), ","), ",")
	for _, hop := range slices.Backward(hops) {
		before, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil || !within(client, proxies) {
			break
		}
		client = before.Unmap().WithZone("")
	}
	if client.Is6() {
		return netip.PrefixFrom(client, 64).Masked().String()
	}
	return client.String()
}

func within(a netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}
