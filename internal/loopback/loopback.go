// Package loopback reports whether a host can be reached from this machine only.
// Comes in: a name or an address. Goes out: true or false.
package loopback

import (
	"context"
	"net"
	"slices"
)

// Only reports whether all addresses of a host are loopback addresses. It is false
// for a name without addresses, and for the empty host, which means every address.
// It blocks for as long as the resolver takes, or until ctx ends.
func Only(ctx context.Context, host string) bool {
	if host == "" {
		return false
	}
	addrs, err := net.DefaultResolver.LookupIPAddr(ctx, host) // also parses an address
	return err == nil && len(addrs) > 0 && !slices.ContainsFunc(addrs, func(a net.IPAddr) bool { return !a.IP.IsLoopback() })
}
