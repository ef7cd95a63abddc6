package field

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"linktrial/internal/radio"
	"linktrial/lab/netns"
)

// Block is what a packet filter drops: packets of a protocol in one direction or, as
// "udp", in both ("udp-in" is what comes in), or fragments that come in: what leaves is
// cut into fragments behind the filter.
type Block string

// The directions of a [Block] that has one.
const (
	into  = "-in"
	outOf = "-out"
)

// fragmented is the [Block] of fragments.
const fragmented Block = "fragments"

// protocols are the numbers of the protocols that a filter can drop (IANA, Protocol
// Numbers).
var protocols = map[string]byte{"icmp": unix.IPPROTO_ICMP, "tcp": unix.IPPROTO_TCP, "udp": unix.IPPROTO_UDP, "sctp": unix.IPPROTO_SCTP}

// Blocks returns every [Block].
func Blocks() []Block {
	var out []Block
	for _, p := range []string{"tcp", "udp", "sctp", "icmp"} {
		out = append(out, Block(p), Block(p+into), Block(p+outOf))
	}
	return append(out, fragmented)
}

// split returns the protocol of a block and the hooks at which it drops.
func (b Block) split() (protocol string, in, out bool, err error) {
	if !slices.Contains(Blocks(), b) {
		return "", false, false, fmt.Errorf("filter %.40q, expected one of %v", string(b), Blocks())
	}
	s := string(b)
	protocol = strings.TrimSuffix(strings.TrimSuffix(s, into), outOf)
	return protocol, !strings.HasSuffix(s, outOf), !strings.HasSuffix(s, into), nil
}

// Names of the tables: nothing else on a node has them.
const (
	filterTable = "linktrial-field-filter"
	natTable    = "linktrial-field-nat"
)

// Filter has a node drop what a block names on its radio, until end is called. The
// node's own firewall does so, which neither end's drivers are told of.
func Filter(l *netns.Lab, role radio.Role, b Block) (end func() error, err error) {
	protocol, in, out, err := b.split()
	if err != nil {
		return nil, err
	}
	match := matching(protocol)
	if b == fragmented {
		match = fragments()
	}
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: filterTable}
	return installed(l, role, table, func(c *nftables.Conn) {
		for _, d := range []struct {
			drops bool
			hook  *nftables.ChainHook
			key   expr.MetaKey
		}{
			{in, nftables.ChainHookPrerouting, expr.MetaKeyIIFNAME},
			{out, nftables.ChainHookPostrouting, expr.MetaKeyOIFNAME},
		} {
			if !d.drops {
				continue
			}
			// Before a connection tracker, which puts fragments together.
			chain := c.AddChain(&nftables.Chain{
				Name: fmt.Sprintf("hook%d", *d.hook), Table: table, Type: nftables.ChainTypeFilter,
				Hooknum: d.hook, Priority: nftables.ChainPriorityFirst,
			})
			rule := slices.Concat(onDevice(d.key), match, []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}})
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule})
		}
	})
}

// onDevice matches packets of the radio's interface.
func onDevice(key expr.MetaKey) []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, netns.Device)
	return []expr.Any{
		&expr.Meta{Key: key, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name},
	}
}

// matching matches packets of a protocol: the ninth byte of the IPv4 header (RFC 791,
// section 3.1), which fragments have, too.
func matching(protocol string) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 9, Len: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocols[protocol]}},
	}
}

// fragments matches packets that are fragments: with more fragments to come, or with an
// offset, which are all bits of the word at 6 but the reserved one and "don't fragment".
func fragments() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 6, Len: 2},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 2, Mask: []byte{0x3f, 0xff}, Xor: []byte{0, 0}},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{0, 0}},
	}
}

// otherHost is the last part of the address that a node has behind [Translate].
const otherHost = 88

// Translate has what a node sends on its radio leave under another address of the
// network, as behind a NAT, until end is called.
func Translate(l *netns.Lab, role radio.Role) (end func() error, err error) {
	n, err := l.State.Node(role)
	if err != nil {
		return nil, err
	}
	own := net.ParseIP(n.RadioAddress).To4()
	if own == nil {
		return nil, fmt.Errorf("radio address %q of the %s is not an IPv4 address", n.RadioAddress, role)
	}
	other := net.IPv4(own[0], own[1], own[2], otherHost).To4()
	remove, err := l.AddAddress(role, other)
	if err != nil {
		return nil, err
	}
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: natTable}
	endTable, err := installed(l, role, table, func(c *nftables.Conn) {
		chain := c.AddChain(&nftables.Chain{
			Name: "source", Table: table, Type: nftables.ChainTypeNAT,
			Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
		})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: slices.Concat(onDevice(expr.MetaKeyOIFNAME), []expr.Any{
			&expr.Immediate{Register: 1, Data: other},
			&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
		})})
	})
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return func() error { return errors.Join(endTable(), remove()) }, nil
}

// installed puts a table into a node's packet filter, and returns what removes it.
func installed(l *netns.Lab, role radio.Role, table *nftables.Table, fill func(c *nftables.Conn)) (end func() error, err error) {
	change := func(f func(c *nftables.Conn)) error {
		return onFilter(l, role, func(c *nftables.Conn) error {
			f(c)
			return c.Flush()
		})
	}
	err = change(func(c *nftables.Conn) {
		c.AddTable(table)
		fill(c)
	})
	return func() error { return change(func(c *nftables.Conn) { c.DelTable(table) }) }, err
}

// onFilter runs f with the packet filter of a node.
func onFilter(l *netns.Lab, role radio.Role, f func(c *nftables.Conn) error) error {
	n, err := l.State.Node(role)
	if err != nil {
		return err
	}
	h, err := vnetns.GetFromName(n.Namespace)
	if err != nil {
		return fmt.Errorf("namespace of %s: %w", role, err)
	}
	defer h.Close()
	c, err := nftables.New(nftables.WithNetNSFd(int(h)))
	if err != nil {
		return fmt.Errorf("packet filter of the %s: %w", role, err)
	}
	if err := f(c); err != nil {
		return fmt.Errorf("packet filter of the %s (the kernel needs nf_tables): %w", role, err)
	}
	return nil
}
