// Package loopback says whether a host is reached from this machine alone. Comes
// in: a name or an address. Goes out: yes or no.
package loopback

import (
	"context"
	"net"
	"slices"
)

// Only says whether all addresses of a host are the loopback's. A name that has
// none, and the empty host, which stands for every address, are not. It blocks
// for as long as the resolver takes, or until ctx ends.
func Only(ctx context.Context, host string) bool {
	if host == "" {
		return false
	}
	addrs, err := net.DefaultResolver.LookupIPAddr(ctx, host) // an address is its own answer
	return err == nil && len(addrs) > 0 && !slices.ContainsFunc(addrs, func(a net.IPAddr) bool { return !a.IP.IsLoopback() })
}
