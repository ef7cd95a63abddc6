// Package radioonly is the packet filter that lets the packets of an agent's drivers out by
// the interfaces of the node's radios alone: they share the namespace of the radio with the
// agent and its control network. Comes in: the agent's name and the radio's interface.
// Goes out: the group that drivers are to be in, and rules for it in this process's network
// namespace.
package radioonly

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"linktrial/executor/runsheet"
	"linktrial/protocols/contract"
)

// Group is the numeric group of an agent's drivers. Two agents in one namespace
// have radios of their own, so each has a group of its own, from a range that
// systems assign neither to people nor to services.
func Group(agent string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(agent)) // a hash's Write does not fail
	return 0x4c54_0000 + h.Sum32()&0xffff
}

// TablePrefix begins the name of the table of an agent's drivers.
const TablePrefix = "linktrial-drivers-"

// ruleset is the packet filter's part of the confinement.
type ruleset struct {
	table *nftables.Table
	chain *nftables.Chain
	rules [][]expr.Any
}

// ephemeral is the first port that Linux gives to sockets that ask for none.
const ephemeral = 32768

// newRuleset lets drivers of a group out by the interfaces of the node's radios.
func newRuleset(gid uint32, devices ...string) ruleset {
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: fmt.Sprintf("%s%d", TablePrefix, gid)}
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

// Filter keeps the drivers of an agent to the node's radios. Its methods may be called
// from several goroutines; those of one without an interface do nothing.
type Filter struct {
	group  uint32
	device string

	mu      sync.Mutex // held while the packet filter is changed
	devices []string   // the interfaces that drivers may use
	seen    uint32     // generation of the packet filter with which the rules were there; 0: none
}

// New returns the filter of an agent's drivers, whose radio has an interface; none is
// installed yet. Without an interface there will be none.
func New(agent, device string) *Filter { return &Filter{group: Group(agent), device: device} }

// Group is the group that drivers are in.
func (f *Filter) Group() uint32 { return f.group }

// Use installs the rules for drivers that use more radios of the node than the agent's. A
// run's radios are known before its first driver, and the filter is not changed while it
// is watched.
func (f *Filter) Use(devices ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hold(devices)
}

// Hold installs the rules in the namespace of this process, where they are not there. It
// is called before every driver: a firewall that is reloaded removes them, and parameters
// may name a radio that no other driver has used.
func (f *Filter) Hold(p *contract.Parameters) error { return f.Use(devicesOf(p)...) }

// Holds reports whether drivers with these parameters are to be kept to the radio: the
// agent has one, and theirs is not the loopback.
func (f *Filter) Holds(p *contract.Parameters) bool {
	local, err := netip.ParseAddr(p.Local.Address)
	return f.device != "" && (err != nil || !local.IsLoopback())
}

func (f *Filter) hold(more []string) error {
	if f.device == "" {
		return nil
	}
	devices := f.devices
	for _, d := range append([]string{f.device}, more...) {
		if len(d) >= unix.IFNAMSIZ {
			return fmt.Errorf("radio's interface %q: expected at most %d characters", d, unix.IFNAMSIZ-1)
		}
		if !slices.Contains(devices, d) {
			devices = append(devices, d)
		}
	}
	if now := generation(); len(devices) == len(f.devices) && now != 0 && now == f.seen {
		return nil
	}
	f.devices, f.seen = devices, 0
	named := strings.Join(devices, ", ")
	s := newRuleset(f.group, devices...)
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return failed(named, err)
	}
	defer func() { _ = c.CloseLasting() }() // no call is under way
	now := generation()
	if s.installed(c) {
		f.seen = now
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
		return failed(named, err)
	}
	now = generation()
	if !s.installed(c) {
		return failed(named, errors.New("the installed rules are not the requested ones"))
	}
	f.seen = now
	return nil
}

// generation is the number that the kernel's packet filter has in this thread's network
// namespace, another one after each change of any table; 0: it does not tell. It takes a
// tenth of the time that the rules take to read, and is asked for before each driver.
func generation() uint32 {
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, 0)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC, Version: unix.NFNETLINK_V0})
	answers, err := request.Execute(unix.NETLINK_NETFILTER, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN)
	if err != nil || len(answers) != 1 {
		return 0
	}
	return generationOf(answers[0])
}

func generationOf(answer []byte) uint32 {
	if len(answer) < nl.SizeofNfgenmsg {
		return 0
	}
	attributes, err := nl.ParseRouteAttr(answer[nl.SizeofNfgenmsg:])
	if err != nil {
		return 0
	}
	for _, a := range attributes {
		if a.Attr.Type == unix.NFTA_GEN_ID && len(a.Value) == 4 {
			return binary.BigEndian.Uint32(a.Value)
		}
	}
	return 0
}

// Allow lets a driver that was started before use the radios that its parameters name,
// where no other has used them.
func (f *Filter) Allow(p *contract.Parameters) error {
	f.mu.Lock()
	known := !slices.ContainsFunc(devicesOf(p), func(d string) bool { return !slices.Contains(f.devices, d) })
	f.mu.Unlock()
	if known {
		return nil
	}
	return f.Hold(p)
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

func failed(devices string, err error) error {
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

// Remove removes the rules, when no driver is left.
func (f *Filter) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.device == "" {
		return nil
	}
	c, err := nftables.New()
	if err != nil {
		return err
	}
	f.seen = 0
	t := newRuleset(f.group, f.device).table
	c.AddTable(t) // so that there is one
	c.DelTable(t)
	if err := c.Flush(); err != nil {
		return fmt.Errorf("packet filter of drivers: %w", err)
	}
	return nil
}
