// Command tcp is the driver of the kernel's TCP. Comes in and goes out: the
// driver contract (docs/driver-contract.md). Imports protocols/harness and
// protocols/contract.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"syscall"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

//go:embed driver.yaml
var manifest []byte

func main() {
	harness.Main(manifest, harness.Driver{Probe: probe, Listen: listen, Dial: dial})
}

func address(e contract.Endpoint) string { return net.JoinHostPort(e.Address, strconv.Itoa(e.Port)) }

func listen(ctx context.Context, p *contract.Parameters) (harness.Listener, error) {
	// What is set on the listener, its connections inherit.
	lc := net.ListenConfig{Control: settings(p).control, KeepAlive: -1}
	// Go's listeners speak Multipath TCP by default, which has figures and a
	// congestion control of its own.
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, "tcp", address(p.Local))
	if err != nil {
		return nil, err
	}
	return &listener{l.(*net.TCPListener), p}, nil
}

type listener struct {
	*net.TCPListener
	p *contract.Parameters
}

func (l *listener) Accept() (harness.Conn, error) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		k, err := newConn(c, l.p)
		if err == nil {
			return k, nil
		}
		// One connection that is gone already is not the end of the server.
		slog.Warn("connection dropped", "remote", c.RemoteAddr().String(), "error", err)
	}
}

// redialPause keeps a kernel that gives up at once (no SYN retries) from being asked in a loop.
const redialPause = 100 * time.Millisecond

func dial(ctx context.Context, p *contract.Parameters) (harness.Conn, error) {
	// Keepalive probes would end connections in long outages.
	d := net.Dialer{Control: settings(p).control, KeepAlive: -1}
	d.SetMultipathTCP(false)
	if p.Local.Address != "" {
		ip := net.ParseIP(p.Local.Address)
		if ip == nil {
			return nil, harness.Failf(contract.CodeBadParameters, "local.address is %q, expected an IP address", p.Local.Address)
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	for {
		c, err := d.DialContext(ctx, "tcp", address(p.Remote))
		if err == nil {
			return newConn(c.(*net.TCPConn), p)
		}
		// net.ipv4.tcp_syn_retries is not the limit, limits.connect_ms is.
		if !errors.Is(err, syscall.ETIMEDOUT) || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(redialPause):
		}
	}
}
