// Command tcp is the driver of the kernel's TCP. Comes in and goes out: the
// driver contract (docs/driver-contract.md).
package main

import (
	"context"
	_ "embed"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/tcp/socket"
)

//go:embed driver.yaml
var manifest []byte

func main() {
	code := harness.Run(manifest, harness.Driver{Query: leastPrivilege, Listen: listen, Dial: dial}, os.Stdin, os.Stdout, os.Stderr)
	socket.Release()
	os.Exit(code)
}

// leastPrivilege is query in a process of its own: before anything else it gives up
// what this run has no use for.
func leastPrivilege(ctx context.Context, p *contract.Parameters) (*contract.Info, error) {
	if p.Role != contract.RoleQuery {
		if err := socket.Relinquish(p.Options); err != nil {
			slog.Warn("capabilities are not given up", "error", err)
		}
	}
	return query(ctx, p)
}

func address(e contract.Endpoint) string { return net.JoinHostPort(e.Address, strconv.Itoa(e.Port)) }

func listen(ctx context.Context, p *contract.Parameters) (harness.Listener, error) {
	s, err := settings(p)
	if err != nil {
		return nil, err
	}
	l, err := s.Listen().Listen(ctx, "tcp", address(p.Local))
	if err != nil {
		return nil, err
	}
	k := &listener{TCPListener: l.(*net.TCPListener), p: p}
	if s.Multipath {
		if k.release, err = announce(p); err != nil {
			_ = l.Close()
			return nil, err
		}
	}
	return k, nil
}

type listener struct {
	*net.TCPListener
	p       *contract.Parameters
	release func() // takes back that further paths were announced; nil: plain TCP
}

func (l *listener) Close() error {
	if l.release != nil {
		l.release()
	}
	return l.TCPListener.Close()
}

func (l *listener) Accept() (harness.Conn, error) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		var multipath func()
		if l.release != nil {
			multipath = func() {} // what was announced is the listener's
		}
		k, err := newConn(c, l.p, nil, multipath)
		if err == nil {
			return k, nil
		}
		// One connection that is gone already is not the end of the server.
		slog.Warn("connection dropped", "remote", c.RemoteAddr().String(), "error", err)
	}
}

func dial(ctx context.Context, p *contract.Parameters) (harness.Conn, error) {
	d, err := newDialing(p)
	if err != nil {
		return nil, err
	}
	removeLeftRoutes()
	once, release := d.once, (func())(nil)
	if d.settings.Multipath {
		once = d.onceMultipath
		if release, err = accept(p); err != nil {
			return nil, err
		}
	}
	c, err := socket.Redial(ctx, func() (*net.TCPConn, error) {
		c, err := once(ctx)
		if err != nil {
			d.route.remove()
			d.route = nil
		}
		return c, err
	})
	if err != nil {
		if release != nil {
			release()
		}
		return nil, err
	}
	return newConn(c, p, d.route, release)
}

// dialing is one client's way to its connection.
type dialing struct {
	settings socket.Settings
	metrics  metrics
	local    netip.Addr // the zero value: any
	remote   netip.AddrPort
	route    *ownRoute // of the current attempt, nil where none is wanted
}

func newDialing(p *contract.Parameters) (*dialing, error) {
	m, err := metricsOf(p)
	if err != nil {
		return nil, err
	}
	s, err := settings(p)
	if err != nil {
		return nil, err
	}
	d := &dialing{settings: s, metrics: m}
	local, remote, err := harness.ClientAddrPorts(p)
	if err != nil {
		return nil, err
	}
	d.local, d.remote = local.Addr(), remote
	return d, nil
}

// once asks the kernel for a connection once.
func (d *dialing) once(ctx context.Context) (*net.TCPConn, error) {
	nd := d.settings.Dialer()
	nd.Control = d.routed
	// A socket with a route of its own is bound already, when its port must be known.
	if d.local.IsValid() && !d.metrics.wanted() {
		nd.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.local, 0))
	}
	c, err := nd.DialContext(ctx, "tcp", d.remote.String())
	if err != nil {
		return nil, err
	}
	return c.(*net.TCPConn), nil
}
