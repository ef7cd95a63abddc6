package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// Some parameters of a connection are the kernel's route metrics alone, with no
// socket option for them. A connection that wants such a parameter gets a route
// of its own: a copy of the one it would take, with the metric, in a routing
// table of its own, and a rule that leads there for just this connection's
// addresses and ports. No other connection meets it.
//
// Rule and route outlive a process that is killed. Each table is therefore
// claimed by a netlink socket that has the table's number for its own, which is
// unique in the network namespace and ends with its process: a rule of ours
// whose table has no claim was left by a killed driver, and is removed
// by the next one that starts. (A Unix socket of an abstract name would do as
// well, but a container's driver may have none.)
const (
	// ruleProtocol marks the rules and routes of this driver (rtnetlink(7), values
	// above RTPROT_STATIC are free for user space).
	ruleProtocol = 76
	firstTable   = 0x4C540000
	tables       = 4096
	// rulePriority is right after the local addresses. The copied route was found
	// by all the rules that come later, so none of them is skipped.
	rulePriority = 1
	// featureECN is RTAX_FEATURE_ECN of <linux/rtnetlink.h>.
	featureECN = 1
)

// metrics are what a connection's own route is for.
type metrics struct {
	initialWindow int // segments; 0: the route's or the kernel's
	ecn           bool
}

func (m metrics) wanted() bool { return m != metrics{} }

// ecnRequested reports whether connections that leave this node ask for ECN
// anyway, and ecnAccepted whether those that come in get it when they ask
// (net.ipv4.tcp_ecn, Documentation/networking/ip-sysctl.rst).
func ecnRequested(sysctl int) bool { return sysctl == 1 || sysctl == 3 || sysctl == 4 }
func ecnAccepted(sysctl int) bool  { return sysctl != 0 }

func ecnSysctl() (int, error) {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_ecn")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// metricsOf reads the options that need a route. It refuses what this node
// would do otherwise than asked.
func metricsOf(p *contract.Parameters) (metrics, error) {
	var m metrics
	if n, ok := p.Options["initial_window"].(int64); ok {
		m.initialWindow = int(n)
	}
	on, ok := p.Options["ecn"].(bool)
	if !ok {
		return m, nil
	}
	sysctl, err := ecnSysctl()
	if err != nil {
		return m, harness.Unsupported("option ecn: %w", err)
	}
	switch {
	case !on && ecnRequested(sysctl):
		return m, harness.Unsupported("option ecn: net.ipv4.tcp_ecn is %d here, and no single connection can be kept from asking for ECN", sysctl)
	case on && p.Role == contract.RoleServer && !ecnAccepted(sysctl):
		return m, harness.Unsupported("option ecn: net.ipv4.tcp_ecn is %d here, so the server would decline", sysctl)
	}
	m.ecn = on && !ecnRequested(sysctl)
	return m, nil
}

// ownRoute is the route of one connection, until remove.
type ownRoute struct {
	netlink *netlink.Handle
	claimed int // descriptor of the claim
	rule    *netlink.Rule
	route   *netlink.Route // nil: not added yet
}

// addRoute binds a TCP socket, so that its port is known, and gives it a route
// with the metrics. local may be the zero value: any address.
func addRoute(fd int, local netip.Addr, remote netip.AddrPort, device string, m metrics) (*ownRoute, error) {
	source, err := bind(fd, local, remote.Addr())
	if err != nil {
		return nil, err
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, harness.Unsupported("a route for one connection: %w", err)
	}
	table, claimed, err := claimTable()
	if err != nil {
		h.Close()
		return nil, err
	}
	r := &ownRoute{netlink: h, claimed: claimed}
	// The rule goes first: a kernel without rules refuses it, and would take a
	// route of any table into its main one.
	rule := netlink.NewRule()
	rule.Priority, rule.Table, rule.Protocol, rule.IPProto = rulePriority, table, ruleProtocol, unix.IPPROTO_TCP
	rule.Family = family(remote.Addr())
	rule.Dst = host(remote.Addr())
	if !source.Addr().IsUnspecified() {
		rule.Src = host(source.Addr())
	}
	rule.Sport = netlink.NewRulePortRange(source.Port(), source.Port())
	rule.Dport = netlink.NewRulePortRange(remote.Port(), remote.Port())
	if err := h.RuleAdd(rule); err != nil {
		r.remove()
		return nil, routingError(err)
	}
	r.rule = rule
	route, err := r.copyRoute(local, remote.Addr(), device)
	if err != nil {
		r.remove()
		return nil, err
	}
	route.Table, route.Protocol = table, ruleProtocol
	if m.initialWindow > 0 {
		route.InitCwnd = m.initialWindow
	}
	if m.ecn {
		route.Features |= featureECN
	}
	if err := h.RouteAdd(route); err != nil {
		r.remove()
		return nil, routingError(err)
	}
	r.route = route
	return r, nil
}

// bind binds the socket to an address and a port of the kernel's choice.
func bind(fd int, local, remote netip.Addr) (netip.AddrPort, error) {
	var sa unix.Sockaddr
	if remote.Is4() {
		if !local.IsValid() {
			local = netip.IPv4Unspecified()
		}
		if !local.Is4() {
			return netip.AddrPort{}, harness.Failf(contract.CodeBadParameters, "local.address %s and remote.address %s are of different families", local, remote)
		}
		sa = &unix.SockaddrInet4{Addr: local.As4()}
	} else {
		if !local.IsValid() {
			local = netip.IPv6Unspecified()
		}
		sa = &unix.SockaddrInet6{Addr: local.As16()}
	}
	if err := unix.Bind(fd, sa); err != nil {
		return netip.AddrPort{}, harness.Failf(contract.CodeUnreachable, "bind %s: %w", local, err)
	}
	got, err := unix.Getsockname(fd)
	switch got := got.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(local, uint16(got.Port)), nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(local, uint16(got.Port)), nil
	}
	return netip.AddrPort{}, fmt.Errorf("address of a bound socket: %w", err)
}

// copyRoute is the route that the connection would take, as a host route.
func (r *ownRoute) copyRoute(local, remote netip.Addr, device string) (*netlink.Route, error) {
	o := &netlink.RouteGetOptions{Oif: device}
	if local.IsValid() {
		o.SrcAddr = local.AsSlice()
	}
	found, err := r.netlink.RouteGetWithOptions(remote.AsSlice(), o)
	if err != nil {
		return nil, harness.Failf(contract.CodeUnreachable, "route to %s: %w", remote, err)
	}
	if len(found) != 1 {
		return nil, harness.Failf(contract.CodeInternal, "the kernel names %d routes to %s", len(found), remote)
	}
	c := found[0]
	if c.Type != unix.RTN_UNICAST {
		// The table of local addresses comes before every rule.
		return nil, harness.Unsupported("options initial_window and ecn: %s is not on another node, and only a route to one can have them", remote)
	}
	c.Dst, c.Flags, c.Scope = host(remote), 0, unix.RT_SCOPE_LINK
	if c.Gw != nil || c.Via != nil {
		// The gateway was found reachable already, by routes that this table lacks.
		c.Scope = unix.RT_SCOPE_UNIVERSE
		c.Flags = int(netlink.FLAG_ONLINK)
	}
	return &c, nil
}

// remove takes rule and route away. It is called once; nil is no route.
func (r *ownRoute) remove() {
	if r == nil {
		return
	}
	if r.route != nil {
		if err := r.netlink.RouteDel(r.route); err != nil && !errors.Is(err, unix.ESRCH) {
			slog.Warn("remove the connection's route", "error", err)
		}
	}
	if r.rule != nil {
		if err := r.netlink.RuleDel(r.rule); err != nil {
			slog.Warn("remove the connection's rule", "error", err)
		}
	}
	r.netlink.Close()
	_ = unix.Close(r.claimed)
}

// claim takes a table for as long as the descriptor is open.
func claim(table int) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: uint32(table)}); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func claimTable() (table, fd int, err error) {
	for table = firstTable; table < firstTable+tables; table++ {
		if fd, err = claim(table); !errors.Is(err, unix.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		return 0, -1, harness.Failf(contract.CodeInternal, "claim a routing table: %w", err)
	}
	return table, fd, nil
}

// removeLeftRoutes removes what killed drivers have left in this network
// namespace, as far as it is permitted to.
func removeLeftRoutes() {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return
	}
	defer h.Close()
	for _, f := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := h.RuleList(f)
		if err != nil {
			continue // a kernel without rules has none of ours
		}
		for i := range rules {
			u := &rules[i]
			if u.Protocol != ruleProtocol || u.Table < firstTable || u.Table >= firstTable+tables {
				continue
			}
			fd, err := claim(u.Table)
			if err != nil {
				continue // its driver lives
			}
			if err := removeLeft(h, u); err != nil {
				slog.Warn("remove what a killed driver left", "table", u.Table, "error", err)
			}
			_ = unix.Close(fd)
		}
	}
}

func removeLeft(h *netlink.Handle, u *netlink.Rule) error {
	routes, err := h.RouteListFiltered(u.Family, &netlink.Route{Table: u.Table}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return err
	}
	for i := range routes {
		if err := h.RouteDel(&routes[i]); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return h.RuleDel(u)
}

// canRoute reports whether this process may give connections routes of their own.
func canRoute() error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return routingError(err)
	}
	defer h.Close()
	// A rule that does not exist: the kernel checks permission and ability first.
	rule := netlink.NewRule()
	rule.Priority, rule.Table, rule.Protocol, rule.Family = rulePriority, firstTable+tables, ruleProtocol, unix.AF_INET
	if err := h.RuleDel(rule); err != nil && !errors.Is(err, unix.ENOENT) {
		return routingError(err)
	}
	return nil
}

func routingError(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return harness.Unsupported("options initial_window and ecn: a route of the connection's own needs CAP_NET_ADMIN: %w", err)
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EAFNOSUPPORT):
		return harness.Unsupported("options initial_window and ecn: this kernel has no routing rules (CONFIG_IP_MULTIPLE_TABLES): %w", err)
	}
	return harness.Unsupported("options initial_window and ecn: a route of the connection's own: %w", err)
}

func family(a netip.Addr) int {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

func host(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

// routed wraps what a dialer does with a socket before it connects: it adds
// the route. The dialer may open several sockets; the last one's route is kept.
func (d *dialing) routed(network, addr string, c syscall.RawConn) error {
	if err := d.settings.Control(network, addr, c); err != nil || !d.metrics.wanted() {
		return err
	}
	var err error
	if cerr := c.Control(func(fd uintptr) {
		d.route.remove()
		d.route, err = addRoute(int(fd), d.local, d.remote, d.settings.Device, d.metrics)
	}); cerr != nil {
		return cerr
	}
	return err
}
