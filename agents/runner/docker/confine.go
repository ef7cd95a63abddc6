package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"linktrial/executor/runsheet"
	"linktrial/protocols/contract"
)

// A driver shares the namespace of the radio's interface with the agent and its
// control network, so what it must not reach is kept from it by two means. Its
// group is the agent's own for drivers, and the packet filter lets packets of
// that group's sockets out by the radio's interface alone, and to each other
// within the node, where a relay process is on the node of an end. And the sockets that
// it can make are those that this filter sees: a packet socket writes past it, a
// Unix socket can reach abstract names of the same namespace, a netfilter socket
// could remove the rule.

// group is the numeric group of an agent's drivers. Two agents in one namespace
// have radios of their own, so each has a group of its own, from a range that
// systems assign neither to people nor to services.
func group(agent string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(agent)) // a hash's Write does not fail
	return 0x4c54_0000 + h.Sum32()&0xffff
}

// ruleset is the packet filter's part of the confinement.
type ruleset struct {
	table *nftables.Table
	chain *nftables.Chain
	rules [][]expr.Any
}

// ephemeral is the first port that Linux gives to sockets that ask for none.
const ephemeral = 32768

// newRuleset lets drivers out by the interfaces of the node's radios.
func newRuleset(agent string, devices ...string) ruleset {
	gid := group(agent)
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: fmt.Sprintf("linktrial-drivers-%d", gid)}
	return ruleset{
		table: t,
		chain: &nftables.Chain{Name: "out", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter},
		rules: [][]expr.Any{
			within(gid, unix.NFPROTO_IPV4, listeners(destinationPort)),
			within(gid, unix.NFPROTO_IPV4, listeners(sourcePort), ports(destinationPort, ephemeral, math.MaxUint16)),
			within(gid, unix.NFPROTO_IPV6, listeners(destinationPort)),
			within(gid, unix.NFPROTO_IPV6, listeners(sourcePort), ports(destinationPort, ephemeral, math.MaxUint16)),
			append(sentBy(gid, expr.CmpOpNeq, devices...), &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}),
		},
	}
}

// sentBy matches packets of a group's sockets that leave by an interface (op
// [expr.CmpOpEq]), or by none of several ([expr.CmpOpNeq]).
func sentBy(gid uint32, op expr.CmpOp, devices ...string) []expr.Any {
	out := []expr.Any{
		&expr.Meta{Key: expr.MetaKeySKGID, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(gid)},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
	}
	for _, d := range devices {
		name := make([]byte, unix.IFNAMSIZ)
		copy(name, d)
		out = append(out, &expr.Cmp{Op: op, Register: 1, Data: name})
	}
	return out
}

// within accepts what drivers of one node send each other: to a listener's port,
// and back from it. The addresses 127.0.0.0/8 and ::1 are none of theirs: there
// other programs of the node listen for each other.
func within(gid uint32, family byte, matches ...[]expr.Any) []expr.Any {
	out := append(sentBy(gid, expr.CmpOpEq, "lo"),
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{family}})
	to := expr.Payload{OperationType: expr.PayloadLoad, DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 1}
	loopback := []byte{127}
	if family == unix.NFPROTO_IPV6 {
		to.Offset, to.Len, loopback = 24, net.IPv6len, net.IPv6loopback
	}
	out = append(out, &to, &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: loopback})
	return append(append(out, slices.Concat(matches...)...), &expr.Verdict{Kind: expr.VerdictAccept})
}

// The places of the ports in the headers of TCP, UDP, DCCP and SCTP.
const sourcePort, destinationPort = 0, 2

// listeners matches packets whose port at a place is one of a run's listeners.
func listeners(place uint32) []expr.Any {
	return ports(place, runsheet.FirstPort, runsheet.LastPort)
}

func ports(place uint32, from, to uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{OperationType: expr.PayloadLoad, DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: place, Len: 2},
		&expr.Cmp{Op: expr.CmpOpGte, Register: 1, Data: binaryutil.BigEndian.PutUint16(from)},
		&expr.Cmp{Op: expr.CmpOpLte, Register: 1, Data: binaryutil.BigEndian.PutUint16(to)},
	}
}

// confine installs the rules in the namespace of this process. It is called before
// every container, and before one gets its parameters: a firewall that is reloaded
// removes them, and a run may use a second radio, which only its parameters name.
func (r *Runner) confine(p *contract.Parameters) error {
	if r.cfg.Device == "" {
		return nil
	}
	r.confineMu.Lock()
	defer r.confineMu.Unlock()
	devices := r.radios
	for _, d := range append([]string{r.cfg.Device}, devicesOf(p)...) {
		if len(d) >= unix.IFNAMSIZ {
			return fmt.Errorf("radio's interface %q: expected at most %d characters", d, unix.IFNAMSIZ-1)
		}
		if !slices.Contains(devices, d) {
			devices = append(devices, d)
		}
	}
	r.radios = devices
	named := strings.Join(devices, ", ")
	s := newRuleset(r.cfg.Agent, devices...)
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return confineError(named, err)
	}
	defer func() { _ = c.CloseLasting() }() // no call is under way
	if s.installed(c) {
		return nil
	}
	// One transaction replaces the table, whatever there is of it.
	c.AddTable(s.table)
	c.DelTable(s.table)
	c.AddTable(s.table)
	c.AddChain(s.chain)
	for _, exprs := range s.rules {
		c.AddRule(&nftables.Rule{Table: s.table, Chain: s.chain, Exprs: exprs})
	}
	if err := c.Flush(); err != nil {
		return confineError(named, err)
	}
	if !s.installed(c) {
		return confineError(named, errors.New("the installed rules are not the requested ones"))
	}
	return nil
}

// allow lets a container that was prepared use the radios that its parameters name,
// where no other has used them before.
func (r *Runner) allow(p *contract.Parameters) error {
	r.confineMu.Lock()
	known := !slices.ContainsFunc(devicesOf(p), func(d string) bool { return !slices.Contains(r.radios, d) })
	r.confineMu.Unlock()
	if known {
		return nil
	}
	return r.confine(p)
}

// devicesOf are the interfaces of radios that parameters name.
func devicesOf(p *contract.Parameters) (out []string) {
	for _, path := range append([]contract.Path{{Device: p.Device}}, p.Paths...) {
		if path.Device != "" {
			out = append(out, path.Device)
		}
	}
	return out
}

func confineError(devices string, err error) error {
	return fmt.Errorf("drivers cannot be held to the radio's interface %s, which needs CAP_NET_ADMIN and a kernel with nf_tables (CONFIG_NF_TABLES_INET): %w", devices, err)
}

// installed reports whether the rules are there, alone in their chain and unchanged.
func (s ruleset) installed(c *nftables.Conn) bool {
	chain, err := c.ListChain(s.table, s.chain.Name)
	if err != nil || chain.Hooknum == nil || *chain.Hooknum != *s.chain.Hooknum {
		return false
	}
	rules, err := c.GetRules(s.table, s.chain)
	if err != nil || len(rules) != len(s.rules) {
		return false
	}
	for i, have := range rules {
		if !s.same(have.Exprs, s.rules[i]) {
			return false
		}
	}
	return true
}

// same compares a rule with what was asked for, but for what was counted.
func (s ruleset) same(have, want []expr.Any) bool {
	if len(have) != len(want) {
		return false
	}
	for i := range have {
		_, counts := have[i].(*expr.Counter)
		if _, wanted := want[i].(*expr.Counter); counts && wanted {
			continue
		}
		a, err1 := expr.Marshal(byte(s.table.Family), have[i])
		b, err2 := expr.Marshal(byte(s.table.Family), want[i])
		if err1 != nil || err2 != nil || string(a) != string(b) {
			return false
		}
	}
	return true
}

// unconfine removes the rules, when no driver is left.
func (r *Runner) unconfine() error {
	if r.cfg.Device == "" {
		return nil
	}
	r.confineMu.Lock()
	defer r.confineMu.Unlock()
	c, err := nftables.New()
	if err != nil {
		return err
	}
	t := newRuleset(r.cfg.Agent, r.cfg.Device).table
	c.AddTable(t) // so that there is one
	c.DelTable(t)
	if err := c.Flush(); err != nil {
		return fmt.Errorf("packet filter of drivers: %w", err)
	}
	return nil
}

// user is as whom a driver runs: the image's user in the agent's group for
// drivers. The image's own group comes besides, for the files that it may read.
func (r *Runner) user(image string) (user string, groups []string) {
	name, own, has := strings.Cut(image, ":")
	if name == "" {
		name = "0"
	}
	if has && own != "" {
		groups = []string{own}
	}
	return name + ":" + strconv.FormatUint(uint64(group(r.cfg.Agent)), 10), groups
}

// sockets is the filter of system calls for a driver.
func (r *Runner) sockets(m *contract.Manifest) string {
	if slices.Contains(m.Capabilities, "CAP_NET_ADMIN") {
		return r.adminSockets
	}
	return r.plainSockets
}

// socketProfile is the engine's default filter of system calls with fewer kinds
// of sockets: IP, and the netlink that shows and sets interfaces and routes. A driver
// that may change the namespace (admin) also gets Multipath TCP and the generic
// netlink with which its paths are set up. Others could not set up any, and the kernel
// has sockets of its own below one of Multipath TCP, which have no group until they
// are connected.
func socketProfile(admin bool) (string, error) {
	profile := seccomp.DefaultProfile()
	var kept []*seccomp.Syscall
	for _, s := range profile.Syscalls {
		var names []string
		for _, name := range s.Names {
			// socketcall is the older way to the same, and its arguments cannot be seen.
			if name != "socket" && name != "socketcall" {
				names = append(names, name)
			}
		}
		if s.Names = names; len(names) > 0 {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		return "", errors.New("the default filter of system calls is empty")
	}
	is := func(argument uint, number uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: argument, Value: number, Op: specs.OpEqualTo}
	}
	const domain, protocol = 0, 2
	inet, inet6 := []specs.LinuxSeccompArg{is(domain, unix.AF_INET)}, []specs.LinuxSeccompArg{is(domain, unix.AF_INET6)}
	kinds := [][]specs.LinuxSeccompArg{{is(domain, unix.AF_NETLINK), is(protocol, unix.NETLINK_ROUTE)}}
	if admin {
		kinds = append(kinds, []specs.LinuxSeccompArg{is(domain, unix.AF_NETLINK), is(protocol, unix.NETLINK_GENERIC)})
	} else {
		single := specs.LinuxSeccompArg{Index: protocol, Value: unix.IPPROTO_MPTCP, Op: specs.OpNotEqual}
		inet, inet6 = append(inet, single), append(inet6, single)
	}
	for _, args := range append(kinds, inet, inet6) {
		kept = append(kept, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: args}})
	}
	profile.Syscalls = kept
	b, err := json.Marshal(profile)
	if err != nil {
		return "", fmt.Errorf("filter of system calls: %w", err)
	}
	return string(b), nil
}
