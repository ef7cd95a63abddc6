// TCP, from the standard library alone. THE FILE TO REPLACE: for another protocol,
// write its functions and the methods of its types anew. The types Driver, Listener
// and Conn in linktrial/protocols/harness/driver.go say what the rest needs of a
// protocol.
package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// manifest repeats what driver.yaml says of features and options: the harness
// refuses other options, and fills in the defaults.
var manifest = contract.Manifest{
	Features: []contract.Feature{contract.FeatureDuration},
	Options:  []contract.Option{{Name: "nodelay", Type: contract.TypeBool, Default: true}},
}

func main() {
	harness.Drive(&manifest, harness.Driver{Query: query, Listen: listen, Dial: dial})
}

// query reports what would carry the data on this node. harness.Unsupported says why
// nothing can.
func query(context.Context, *contract.Parameters) (*contract.Info, error) {
	return &contract.Info{Implementation: "linux-kernel"}, nil
}

func address(e contract.Endpoint) string { return net.JoinHostPort(e.Address, strconv.Itoa(e.Port)) }

// listen opens the server's port.
func listen(ctx context.Context, p *contract.Parameters) (harness.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1} // keepalives would end a connection in an outage
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
		if s, err := newConn(c, l.p); err == nil {
			return s, nil
		}
		// One connection that is gone already is not the end of the server.
	}
}

// dial asks for a connection until ctx ends, unless it is refused or there is no way
// to the server.
func dial(ctx context.Context, p *contract.Parameters) (harness.Conn, error) {
	d := net.Dialer{KeepAlive: -1}
	d.SetMultipathTCP(false)
	if p.Local.Address != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(p.Local.Address)}
	}
	for {
		c, err := d.DialContext(ctx, "tcp", address(p.Remote))
		if err == nil {
			return newConn(c.(*net.TCPConn), p)
		}
		// The kernel's own attempts may be over before the limit.
		if !errors.Is(err, syscall.ETIMEDOUT) || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// conn is one connection. As long as its transfer has not ended, the end of the
// process in whatever way resets it (a linger of 0): without an owner it would go on
// sending what is in its buffer.
type conn struct{ *net.TCPConn }

func newConn(c *net.TCPConn, p *contract.Parameters) (harness.Conn, error) {
	err := errors.Join(c.SetLinger(0), c.SetNoDelay(p.Options["nodelay"] == true))
	if p.Transfer.DurationMS > 0 {
		err = errors.Join(err, keepLittleUnsent(c))
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &conn{c}, nil
}

// keepLittleUnsent makes Write wait while much is not sent: what is left when a
// transfer's time is up would be sent all the same.
func keepLittleUnsent(c *net.TCPConn) error {
	const notsentLowat = 25 // TCP_NOTSENT_LOWAT of <linux/tcp.h>
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notsentLowat, 16<<10) })
	return errors.Join(err, serr)
}

// Sample fills in what the protocol knows of itself; sent_bytes is there already.
func (c *conn) Sample(*contract.Sample, bool) {}

// Info adds nothing to what query said.
func (c *conn) Info() *contract.Info { return nil }

// Close closes in order: what was written still arrives.
func (c *conn) Close() error { return errors.Join(c.SetLinger(-1), c.TCPConn.Close()) }

// Abort resets the connection: what was not sent is discarded.
func (c *conn) Abort() { _ = c.TCPConn.Close() }
