package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"linktrial/internal/process"
	"linktrial/internal/radio"
)

// Node returns the state of the node of a role.
func (s *State) Node(role radio.Role) (*NodeState, error) {
	_, n, err := s.place(role)
	return n, err
}

// place returns the node of a role and its index among the lab's nodes.
func (s *State) place(role radio.Role) (int, *NodeState, error) {
	for i := range s.Nodes {
		if s.Nodes[i].Role == role {
			return i, &s.Nodes[i], nil
		}
	}
	return 0, nil, fmt.Errorf("the lab has no node %s", role)
}

// onRadio runs f on the radio interface of a node.
func onRadio(s *State, role radio.Role, f func(*netlink.Handle, netlink.Link) error) error {
	n, err := s.Node(role)
	if err != nil {
		return err
	}
	err = onNamespace(n.Namespace, func(c *netlink.Handle) error {
		link, err := c.LinkByName(device)
		if err != nil {
			return err
		}
		return f(c, link)
	})
	if err != nil {
		return fmt.Errorf("%s of %s: %w", device, role, err)
	}
	return nil
}

// SetRadio takes a node's radio interface down, or up again. What the radio delivers
// meanwhile is lost.
func SetRadio(s *State, role radio.Role, up bool) error {
	return onRadio(s, role, func(c *netlink.Handle, l netlink.Link) error {
		if up {
			return c.LinkSetUp(l)
		}
		return c.LinkSetDown(l)
	})
}

// SetRadioMTU sets the MTU of a node's radio interface, in bytes, and returns what it
// was.
func SetRadioMTU(s *State, role radio.Role, bytes int) (before int, err error) {
	err = onRadio(s, role, func(c *netlink.Handle, l netlink.Link) error {
		before = l.Attrs().MTU
		return c.LinkSetMTU(l, bytes)
	})
	return before, err
}

// otherHost is the last part of the address that a node's radio interface has after
// its address has changed: no role has it.
const otherHost = 77

// SetRadioAddress gives a node's radio interface another address of its network, or
// its own one back.
func SetRadioAddress(s *State, role radio.Role, own bool) error {
	n, err := s.Node(role)
	if err != nil {
		return err
	}
	ip := net.ParseIP(n.RadioAddress).To4()
	if ip == nil {
		return fmt.Errorf("radio address %q of %s is not an IPv4 address", n.RadioAddress, role)
	}
	other := net.IPv4(ip[0], ip[1], ip[2], otherHost).To4()
	addr := func(ip net.IP) *netlink.Addr {
		return &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(radio.PrefixBits, 32)}}
	}
	from, to := addr(ip), addr(other)
	if own {
		from, to = to, from
	}
	return onRadio(s, role, func(c *netlink.Handle, l netlink.Link) error {
		if err := c.AddrDel(l, from); err != nil {
			return fmt.Errorf("remove address %s: %w", from.IP, err)
		}
		if err := c.AddrAdd(l, to); err != nil {
			return fmt.Errorf("set address %s: %w", to.IP, err)
		}
		return nil
	})
}

// EmulatorPID returns the PID of the emulator, 0 while none runs.
func (l *Lab) EmulatorPID() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.State.EmulatorDown != nil {
		return 0
	}
	return l.State.Emulator
}

// PowerCut ends everything on a node as when its power fails: its interfaces go down,
// so that nobody hears of it, and its processes are killed. Until restore is called
// [Lab.AwaitPower] blocks for the node.
func (l *Lab) PowerCut(role radio.Role) (restore func() error, err error) {
	n, err := l.State.Node(role)
	if err != nil {
		return nil, err
	}
	on := make(chan struct{})
	l.mu.Lock()
	if l.power == nil {
		l.power = map[radio.Role]chan struct{}{}
	}
	if l.power[role] != nil {
		l.mu.Unlock()
		return nil, fmt.Errorf("node %s has no power already", role)
	}
	l.power[role] = on
	l.mu.Unlock()
	radioUp, radioErr := l.RadioDown(role)
	controlUp, controlErr := l.ControlDown(role)
	restore = func() error {
		var err error
		for _, up := range []func() error{radioUp, controlUp} {
			if up != nil {
				err = errors.Join(err, up())
			}
		}
		l.mu.Lock()
		delete(l.power, role)
		l.mu.Unlock()
		close(on)
		return err
	}
	if err = errors.Join(radioErr, controlErr, killInside(n.Namespace)); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// AwaitPower blocks while a node has no power, or until ctx ends.
func (l *Lab) AwaitPower(ctx context.Context, role radio.Role) error {
	l.mu.Lock()
	on := l.power[role]
	l.mu.Unlock()
	if on == nil {
		return nil
	}
	select {
	case <-on:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %s has no power: %w", role, ctx.Err())
	}
}

// killLimit is how long killed processes may take to end.
const killLimit = 5 * time.Second

// killInside kills every process whose network namespace is the named one, also those
// that these start meanwhile.
func killInside(name string) error {
	for deadline := time.Now().Add(killLimit); ; time.Sleep(time.Millisecond) {
		all, err := processesIn(name)
		if err != nil || len(all) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d in namespace %s does not end", all[0].PID, name)
		}
		for _, id := range all {
			if err := id.Signal(syscall.SIGKILL); err != nil && !process.Ended(err) {
				return err
			}
		}
	}
}

// processesIn lists the processes whose network namespace is the named one, without this
// one. They were all started by a lab or by somebody inside it.
func processesIn(name string) ([]process.Identity, error) {
	want, err := os.Stat(NamespacePath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	procs, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, err
	}
	var out []process.Identity
	for _, p := range procs {
		st, err := os.Stat(p)
		if err != nil || !os.SameFile(st, want) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(p))))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if id, err := process.Identify(pid); err == nil {
			out = append(out, id)
		}
	}
	return out, nil
}
