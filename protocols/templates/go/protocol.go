// TCP, from the standard library alone. THE FILE TO REPLACE: for another protocol,
// write its functions and the methods of its types anew. The types stream and
// listener in transfer.go say what the rest needs of a protocol.

package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"
	"time"
)

// options are those of driver.yaml, as the parameters have them.
type options struct {
	nodelay bool
}

// parseOptions refuses what driver.yaml does not declare.
func parseOptions(given map[string]any) (options, error) {
	o := options{nodelay: true}
	for name, v := range given {
		on, isBool := v.(bool)
		if name != "nodelay" || !isBool {
			return o, failf(badParameters, "parameters: option %q with the value %v", name, v)
		}
		o.nodelay = on
	}
	return o, nil
}

// probe reports what would carry the data on this node. An error with the code
// unsupported says why nothing can.
func probe(*parameters) (*info, error) {
	return &info{Implementation: "linux-kernel"}, nil
}

func address(e endpoint) string { return net.JoinHostPort(e.Address, strconv.Itoa(e.Port)) }

// listen opens the server's port.
func listen(p *parameters) (listener, error) {
	lc := net.ListenConfig{KeepAlive: -1} // keepalives would end a connection in an outage
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(context.Background(), "tcp", address(p.Local))
	if err != nil {
		return nil, err
	}
	return &tcpListener{l.(*net.TCPListener), p}, nil
}

type tcpListener struct {
	*net.TCPListener
	p *parameters
}

func (l *tcpListener) Accept() (stream, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return newStream(c, l.p), nil
}

// connect asks for a connection until ctx ends, unless it is refused or there is
// no way to the server.
func connect(ctx context.Context, p *parameters) (stream, error) {
	d := net.Dialer{KeepAlive: -1}
	d.SetMultipathTCP(false)
	if p.Local.Address != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(p.Local.Address)}
	}
	for {
		c, err := d.DialContext(ctx, "tcp", address(p.Remote))
		if err == nil {
			return newStream(c.(*net.TCPConn), p), nil
		}
		// The kernel's own attempts may be over before the limit.
		if !errors.Is(err, syscall.ETIMEDOUT) || ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// tcpStream is one connection. As long as its transfer has not ended, the end of the
// process in whatever way resets it (a linger of 0): without an owner it would go on
// sending what is in its buffer.
type tcpStream struct{ *net.TCPConn }

func newStream(c *net.TCPConn, p *parameters) *tcpStream {
	_ = c.SetLinger(0)
	_ = c.SetNoDelay(p.options.nodelay)
	return &tcpStream{c}
}

// keepLittleUnsent makes Write wait while more than so many bytes are not sent:
// what is left when a transfer's time is up would be sent all the same.
func (s *tcpStream) keepLittleUnsent(bytes int) error {
	const notsentLowat = 25 // TCP_NOTSENT_LOWAT of <linux/tcp.h>
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notsentLowat, bytes) })
	return errors.Join(err, serr)
}

// figures fills in what the protocol knows of itself; sent_bytes is there already.
func (s *tcpStream) figures(*sample) {}

// finish closes in order: what was written still arrives.
func (s *tcpStream) finish() {
	_ = s.SetLinger(-1)
	_ = s.Close()
}

// abort resets the connection: what was not sent is discarded.
func (s *tcpStream) abort() { _ = s.Close() }
