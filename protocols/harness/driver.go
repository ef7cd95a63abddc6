package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"linktrial/protocols/contract"
)

// Driver is what a protocol implements. Parameters have been checked, options
// have their defaults filled in, before any of its functions is called.
type Driver struct {
	// Query reports what carries the data on this node. It leaves nothing open
	// behind. An error means that the driver cannot run here; it is called
	// before Listen and Dial too, so it must be quick.
	Query func(ctx context.Context, p *contract.Parameters) (*contract.Info, error)
	// Listen opens p.Local. Connections are accepted once it has returned.
	Listen func(ctx context.Context, p *contract.Parameters) (Listener, error)
	// Dial connects to p.Remote. It retries until ctx ends, unless the
	// network refuses or there is no route (refused, unreachable).
	Dial func(ctx context.Context, p *contract.Parameters) (Conn, error)
	// Relay opens p.Local as Listen does, of a driver whose manifest has the role
	// relay; nil where it has not.
	Relay func(ctx context.Context, p *contract.Parameters) (*Relay, error)
	// Packets is in the place of Listen and Dial for a driver of
	// [contract.KindProbe]; nil for those that carry transfers.
	Packets *Packets
}

// Listener accepts connections until it is closed.
type Listener interface {
	// Accept waits for the next connection. It returns an error that wraps
	// [net.ErrClosed] once Close was called, from any goroutine.
	Accept() (Conn, error)
	Close() error
}

// Conn is one reliable byte stream. Read and Write are called from one
// goroutine, and nothing but SetDeadline after Close or Abort.
type Conn interface {
	io.Reader
	io.Writer
	// SetDeadline bounds all later and all waiting reads and writes, which then
	// fail with an error that wraps [os.ErrDeadlineExceeded]. Zero is no bound.
	// It is called from any goroutine, now and then also after Close or Abort.
	SetDeadline(t time.Time) error
	// Sample fills in what the protocol knows of itself now, from any
	// goroutine. ElapsedNS and SentBytes are set already. AckedBytes, where it
	// is set, counts all bytes of the stream that the other end has
	// acknowledged; the harness takes off the transfer's header.
	Sample(s *contract.Sample, sender bool)
	// Info may refine what Query said, now that there is a connection; nil where it does not.
	Info() *contract.Info
	// Close ends the stream gracefully: what was written still arrives.
	Close() error
	// Abort resets the stream: what was not sent yet is discarded.
	Abort()
}

// Identified is a server's [Conn] that wants to know whose transfer it carries, for
// the name of its log.
type Identified interface {
	// Identify is called once, when the header has been read.
	Identify(transfer string)
}

// Multipath is a [Conn] that carries a transfer over several paths.
type Multipath interface {
	// Paths is what each has carried so far; nil where the transfer has but one.
	Paths(sender bool) []contract.PathResult
}

// pathsOf are those of a connection, nil where it is none of several.
func pathsOf(c Conn, sender bool) []contract.PathResult {
	if m, ok := c.(Multipath); ok {
		return m.Paths(sender)
	}
	return nil
}

// Failure is an error with its code in the contract.
type Failure struct {
	Code contract.Code
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Failf makes a [Failure]; a %w in the format wraps.
func Failf(code contract.Code, format string, args ...any) error {
	return &Failure{Code: code, Err: fmt.Errorf(format, args...)}
}

// AddrPort is an address of the parameters; of says which, for the error. Without
// an address it is the zero value.
func AddrPort(e contract.Endpoint, of string) (netip.AddrPort, error) {
	if e.Address == "" {
		return netip.AddrPort{}, nil
	}
	a, err := netip.ParseAddr(e.Address)
	if err != nil {
		return netip.AddrPort{}, Failf(contract.CodeBadParameters, "%s.address is %q, expected an IP address", of, e.Address)
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(e.Port)), nil
}

// ClientAddrPorts are the two addresses of a client: its own with any port, the zero
// value where it has none, and the server's.
func ClientAddrPorts(p *contract.Parameters) (local, remote netip.AddrPort, err error) {
	if local, err = AddrPort(p.Local, "local"); err != nil {
		return local, remote, err
	}
	if local.IsValid() {
		local = netip.AddrPortFrom(local.Addr(), 0)
	}
	remote, err = AddrPort(p.Remote, "remote")
	return local, remote, err
}

// closeWithin bounds the end of a connection: what was sent is delivered first, which
// the transfer's deadlines bound already; then the other end has to hear of the close.
const closeWithin = 3 * time.Second

// CloseInTime ends a connection in order; that the other end has not heard of it in
// time is no error.
func CloseInTime(c interface {
	Close(ctx context.Context) error
}) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	if err := c.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// Unsupported says that this node cannot do what was asked, and why.
func Unsupported(format string, args ...any) error {
	return Failf(contract.CodeUnsupported, format, args...)
}

// codeOf finds the contract's code of an error; otherwise is used where the
// error does not say.
func codeOf(err error, otherwise contract.Code) contract.Code {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f.Code
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN):
		return contract.CodeUnreachable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE),
		errors.Is(err, syscall.ECONNABORTED), errors.Is(err, syscall.ETIMEDOUT):
		return contract.CodeReset
	}
	return otherwise
}

// dialCode is codeOf while a connection is being made.
func dialCode(err error) contract.Code {
	var f *Failure
	var ne net.Error
	switch {
	case errors.As(err, &f):
		return f.Code
	case errors.Is(err, syscall.ECONNREFUSED):
		return contract.CodeConnectRefused
	case errors.Is(err, syscall.EADDRNOTAVAIL): // the node has lost local.address
		return contract.CodeUnreachable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return contract.CodeConnectTimeout
	case errors.As(err, &ne) && ne.Timeout():
		return contract.CodeConnectTimeout
	}
	return codeOf(err, contract.CodeInternal)
}
