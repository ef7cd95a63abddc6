// Package tun carries packets between nodes over emulated radios in real time: a
// TUN device in each node's network namespace, one thread with an event loop
// between them, and a control socket (internal/radiocontrol). Comes in: a Config,
// packets, requests. Goes out: packets, reports, packet logs. Linux only, needs
// root.
package tun

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/emulator/link"
	"linktrial/emulator/telemetry"
	"linktrial/internal/radio"
)

// Config is what the emulator needs to start. It travels as JSON to the
// process that runs the device loop.
type Config struct {
	Nodes         []NodeConfig   `json:"nodes"`
	Device        string         `json:"device"` // name of the interface in each node; empty: radio0
	Network       *radio.Network `json:"network"`
	ControlSocket string         `json:"control_socket,omitempty"` // path; empty: none

	// Shared makes the loop share one thread with the caller's goroutines, which it
	// blocks for a second at most. It is for where time is virtual and each
	// switch between threads costs more than all of the loop's work; where time is
	// real, packets would be late whenever another goroutine computes.
	Shared bool `json:"shared,omitempty"`

	// Stoppable means that the process may be stopped although it shares a thread: its
	// loop then looks at the clock as where time is real, and reports when it did not
	// run.
	Stoppable bool `json:"stoppable,omitempty"`

	// Keep makes the devices outlive this process, and takes over those of an earlier
	// one: a node whose emulated radio is started again keeps its interface, with the
	// address, the counters and the sockets on it. The namespaces' end removes them.
	Keep bool `json:"keep,omitempty"`

	// Telemetry makes each radio answer SNMP and HTTP in its node's namespace, on
	// the ports that internal/radio names.
	Telemetry bool `json:"telemetry,omitempty"`

	// LabKey is the private key (Ed25519) of the lab, with which the emulator vouches for
	// the nodes that it has devices in; empty: it vouches for none.
	LabKey ed25519.PrivateKey `json:"lab_key,omitempty"`

	Logger *slog.Logger `json:"-"` // nil: no log
	Ready  func()       `json:"-"` // called once packets can flow
}

// NodeConfig says where a node's device goes.
type NodeConfig struct {
	Role radio.Role `json:"role"`
	// NetNS is a name under /run/netns, or a path; empty: the caller's own.
	NetNS   string `json:"netns,omitempty"`
	Address string `json:"address"` // IPv4 on the radio network
}

const defaultDevice = "radio0"

// Run starts the emulator and carries packets until ctx ends (nil) or it fails.
func Run(ctx context.Context, cfg Config) error {
	e, err := Start(cfg)
	if err != nil {
		return err
	}
	if cfg.Ready != nil {
		cfg.Ready()
	}
	select {
	case <-ctx.Done():
	case <-e.Done():
	}
	return e.Stop()
}

// Emulator is a running device loop.
type Emulator struct {
	loop    *loop
	devices []*device
	control *control
	log     *slog.Logger

	telemetry []*telemetry.Server

	done chan struct{} // closed when the loop has ended
	err  error         // of the loop, after done
	stop sync.Once
}

// Start opens the devices and the control socket and returns when packets can
// flow. The caller must call Stop.
func Start(cfg Config) (*Emulator, error) {
	if cfg.Device == "" {
		cfg.Device = defaultDevice
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	nodes, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("emulator: %w", err)
	}
	nodes = append(nodes, cfg.secondNodes(nodes)...)
	e := &Emulator{log: cfg.Logger, done: make(chan struct{})}
	if err := e.open(cfg, nodes); err != nil {
		e.close()
		return nil, fmt.Errorf("emulator: %w", err)
	}
	go func() {
		defer close(e.done)
		e.err = e.loop.run()
	}()
	if e.control != nil {
		e.control.serve()
	}
	if cfg.Telemetry {
		if err := e.serveTelemetry(); err != nil {
			return nil, fmt.Errorf("emulator: %w", errors.Join(err, e.Stop()))
		}
	}
	e.log.Info("emulated radios are up", "nodes", len(nodes), "medium", string(cfg.Network.Medium), "mtu_bytes", cfg.Network.MTUBytes)
	return e, nil
}

func (e *Emulator) open(cfg Config, nodes []node) error {
	for _, n := range nodes {
		name, network := cfg.Device, cfg.Network
		if n.second {
			name, network = radio.SecondDevice, network.Second
		}
		d, err := openDevice(name, n, network.MTUBytes, cfg.Keep)
		if err != nil {
			return err
		}
		e.devices = append(e.devices, d)
	}
	var err error
	if e.loop, err = newLoop(cfg.Network, nodes, e.devices); err != nil {
		return err
	}
	e.loop.stoppable = !cfg.Shared || cfg.Stoppable
	if cfg.Shared {
		if err := e.loop.share(); err != nil {
			return err
		}
	}
	if cfg.ControlSocket != "" {
		if e.control, err = listen(cfg, e); err != nil {
			return err
		}
	}
	return nil
}

// Done is closed when the device loop has ended, by Stop or by a failure.
func (e *Emulator) Done() <-chan struct{} { return e.done }

// Stop ends the emulator, removes its devices, waits for everything it started
// and returns why the loop ended; nil when Stop itself ended it.
func (e *Emulator) Stop() error {
	e.stop.Do(func() {
		for _, t := range e.telemetry {
			t.Close()
		}
		if e.control != nil {
			e.control.close() // it needs the loop to finish what it is doing
		}
		e.loop.post(func(l *loop) {
			if l != nil {
				l.ending = true
			}
		})
		<-e.done
		e.close()
	})
	return e.err
}

// ProcessorTime is what the loop's thread has used so far.
func (e *Emulator) ProcessorTime() (time.Duration, error) {
	var u unix.Rusage
	var err error
	if !e.loop.do(func(*loop) { err = unix.Getrusage(unix.RUSAGE_THREAD, &u) }) {
		return 0, errEnded
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

func (e *Emulator) close() {
	if e.control != nil {
		e.control.close()
	}
	if e.loop != nil {
		e.loop.close()
	}
	for _, d := range e.devices {
		d.close()
	}
}

// node is a NodeConfig, checked.
type node struct {
	role    radio.Role
	netns   string // path
	address netip.Addr
	second  bool // of the node's second radio
}

// secondNodes are the second radios of the nodes that have one: nodes has each once.
func (c *Config) secondNodes(nodes []node) []node {
	if c.Network.Second == nil {
		return nil
	}
	var out []node
	for _, n := range nodes {
		if a, err := address(c.Network.Second.AddressOf(n.role)); err == nil {
			out = append(out, node{role: n.role, netns: n.netns, address: a, second: true})
		}
	}
	return out
}

func (c *Config) check() ([]node, error) {
	if c.Network == nil {
		return nil, errors.New("no network")
	}
	if len(c.LabKey) != 0 && len(c.LabKey) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("key of the lab: %d bytes, expected %d", len(c.LabKey), ed25519.PrivateKeySize)
	}
	if len(c.Device) > 15 || strings.ContainsAny(c.Device, "/ \t\n%:") {
		return nil, fmt.Errorf("device name %q, expected at most 15 letters and digits", c.Device)
	}
	var nodes []node
	seen := map[radio.Role]bool{}
	for _, n := range c.Nodes {
		if seen[n.Role] {
			return nil, fmt.Errorf("two nodes are %q", n.Role)
		}
		seen[n.Role] = true
		a, err := address(n.Address)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.Role, err)
		}
		path := n.NetNS
		if path != "" && !strings.Contains(path, "/") {
			path = "/run/netns/" + path
		}
		nodes = append(nodes, node{role: n.Role, netns: path, address: a})
	}
	if err := fits(c.Network, nodes); err != nil || c.Network.Second == nil {
		return nodes, err
	}
	return nodes, fitsSecond(c.Network, c.secondNodes(nodes))
}

func address(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return a, fmt.Errorf("address %q, expected IPv4", s)
	}
	return a, nil
}

// fitsSecond is fits for the network of the second radios, if there is one.
func fitsSecond(n *radio.Network, second []node) error {
	if n.Second == nil {
		return nil
	}
	if n.Second.Second != nil {
		return errors.New("second radios: expected a network without further ones")
	}
	if err := fits(n.Second, second); err != nil {
		return fmt.Errorf("second radios: %w", err)
	}
	return nil
}

// fits reports whether a network can be emulated on the nodes that have devices.
func fits(n *radio.Network, nodes []node) error {
	if err := link.Check(n); err != nil {
		return err
	}
	var errs []error
	for _, v := range n.Nodes {
		found := false
		for _, have := range nodes {
			if have.role == v.Role {
				found = true
				if have.address.String() != v.Address {
					errs = append(errs, fmt.Errorf("the network has %s at %q, its device is at %s", v.Role, v.Address, have.address))
				}
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("the network's node %s has no device", v.Role))
		}
	}
	return errors.Join(errs...)
}
