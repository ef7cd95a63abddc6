package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A driver shares the namespace of the radio's interface with the agent and its
// control network, so what it must not reach is kept from it by two means. Its
// group is the agent's own for drivers, and the packet filter lets packets of
// that group's sockets out by the radio's interface alone. And the sockets that
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
	exprs []expr.Any
}

func newRuleset(agent, device string) ruleset {
	gid := group(agent)
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, device)
	t := &nftables.Table{Family: nftables.TableFamilyINet, Name: fmt.Sprintf("linktrial-drivers-%d", gid)}
	return ruleset{
		table: t,
		chain: &nftables.Chain{Name: "out", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter},
		exprs: []expr.Any{
			&expr.Meta{Key: expr.MetaKeySKGID, Register: 1},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(gid)},
			&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: name},
			&expr.Counter{},
			&expr.Verdict{Kind: expr.VerdictDrop},
		},
	}
}

// confine installs the rule in the namespace of this process. It is called
// before every container: a firewall that is reloaded removes the rule.
func (r *Runner) confine() error {
	if r.cfg.Device == "" {
		return nil
	}
	if len(r.cfg.Device) >= unix.IFNAMSIZ {
		return fmt.Errorf("radio's interface %q: expected at most %d characters", r.cfg.Device, unix.IFNAMSIZ-1)
	}
	r.confineMu.Lock()
	defer r.confineMu.Unlock()
	s := newRuleset(r.cfg.Agent, r.cfg.Device)
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return confineError(r.cfg.Device, err)
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
	c.AddRule(&nftables.Rule{Table: s.table, Chain: s.chain, Exprs: s.exprs})
	if err := c.Flush(); err != nil {
		return confineError(r.cfg.Device, err)
	}
	if !s.installed(c) {
		return confineError(r.cfg.Device, errors.New("the installed rule is not the requested one"))
	}
	return nil
}

func confineError(device string, err error) error {
	return fmt.Errorf("drivers cannot be held to the radio's interface %s, which needs CAP_NET_ADMIN and a kernel with nf_tables (CONFIG_NF_TABLES_INET): %w", device, err)
}

// installed reports whether the rule is there, alone in its chain and unchanged.
func (s ruleset) installed(c *nftables.Conn) bool {
	chain, err := c.ListChain(s.table, s.chain.Name)
	if err != nil || chain.Hooknum == nil || *chain.Hooknum != *s.chain.Hooknum {
		return false
	}
	rules, err := c.GetRules(s.table, s.chain)
	if err != nil || len(rules) != 1 || len(rules[0].Exprs) != len(s.exprs) {
		return false
	}
	for i, have := range rules[0].Exprs {
		if _, counter := have.(*expr.Counter); counter {
			_, counter = s.exprs[i].(*expr.Counter)
			if !counter {
				return false
			}
			continue
		}
		a, err1 := expr.Marshal(byte(s.table.Family), have)
		b, err2 := expr.Marshal(byte(s.table.Family), s.exprs[i])
		if err1 != nil || err2 != nil || string(a) != string(b) {
			return false
		}
	}
	return true
}

// unconfine removes the rule, when no driver is left.
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

// socketProfile is the engine's default filter of system calls with fewer kinds
// of sockets: IP, and the netlink that shows and sets interfaces and routes.
func socketProfile() (string, error) {
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
	domain := func(number uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: 0, Value: number, Op: specs.OpEqualTo}
	}
	route := specs.LinuxSeccompArg{Index: 2, Value: unix.NETLINK_ROUTE, Op: specs.OpEqualTo}
	for _, args := range [][]specs.LinuxSeccompArg{{domain(unix.AF_INET)}, {domain(unix.AF_INET6)}, {domain(unix.AF_NETLINK), route}} {
		kept = append(kept, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: []string{"socket"}, Action: specs.ActAllow, Args: args}})
	}
	profile.Syscalls = kept
	b, err := json.Marshal(profile)
	if err != nil {
		return "", fmt.Errorf("filter of system calls: %w", err)
	}
	return string(b), nil
}
