// Package liveness measures how long nothing has arrived from the other end of a
// call's connection, by the kernel's TCP statistics: without it, a pulled cable
// would end no connection for minutes. Comes in: a server's connections. Goes
// out: a duration, or a context that ends when nothing arrives for a while.
//
// The kernel's keepalive probes are answered by the other kernel, whatever its
// program does, and anything that arrives counts. HTTP/2's pings, which could do
// the same, queue behind what the other end sends: on a slow radio a delivery of
// records delays their answers for minutes, and a server that gives up after
// seconds would cut every delivery. This package cuts nothing: the connection
// stays open, and what was on its way arrives.
//
// Where control shares the radio, no probes are sent during a trial: the agent
// has reset its connections before it. Where that reset was lost on the way, the
// first probe is answered with another.
package liveness

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/service"
)

// Probes configures the kernel's keepalive probes (tcp(7)): often enough that
// nothing for [Limit] means a lost connection, and for longer than the default
// before the kernel gives the connection up, because a radio's link comes back.
var Probes = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: 3 * time.Second, Count: 60}

// Limit is how long nothing may arrive before the other end counts as
// unreachable: two probes of [Probes] have then gone unanswered.
const Limit = 8 * time.Second

// ErrNoContact is the cause of a context that ended because nothing arrived.
var ErrNoContact = errors.New("nothing arrives from the other end of the connection")

type connKey struct{}

// WithConn adds a connection to the context of its calls
// (net/http.Server.ConnContext). Only TCP connections can be measured.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	for {
		inner, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = inner.NetConn()
	}
	if t, ok := c.(*net.TCPConn); ok {
		if raw, err := t.SyscallConn(); err == nil {
			return context.WithValue(ctx, connKey{}, raw)
		}
	}
	return ctx
}

// SinceContact returns how long nothing, not even an acknowledgement, has arrived
// on the connection of a call; false where that is not known.
func SinceContact(ctx context.Context) (time.Duration, bool) {
	info := Of(ctx).statistics()
	if info == nil {
		return 0, false // it is closed, and its calls end by themselves
	}
	return quiet(info), true
}

// Connection is the connection of a call; it can be asked after the call has ended, too.
type Connection struct {
	raw syscall.RawConn // nil: not known
}

// Of returns the connection of a call.
func Of(ctx context.Context) Connection {
	raw, _ := ctx.Value(connKey{}).(syscall.RawConn)
	return Connection{raw}
}

// DataReceived returns how long no data has arrived; false where that is not known.
// Acknowledgements and probes, which the other kernel sends for a program that is
// stopped, do not count.
func (c Connection) DataReceived() (time.Duration, bool) {
	info := c.statistics()
	if info == nil {
		return 0, false
	}
	return time.Duration(info.Last_data_recv) * time.Millisecond, true
}

// established is the state of a connection that neither end has closed (Linux's
// TCP_ESTABLISHED, <netinet/tcp.h>).
const established = 1

// Open reports whether neither end has closed the connection and something has arrived
// within [Limit]; false where that is not known, too.
func (c Connection) Open() bool {
	info := c.statistics()
	return info != nil && info.State == established && quiet(info) < Limit
}

// quiet is how long nothing has arrived.
func quiet(info *unix.TCPInfo) time.Duration {
	return time.Duration(min(info.Last_data_recv, info.Last_ack_recv)) * time.Millisecond
}

// statistics returns what the kernel knows of the connection; nil where it is closed, or
// not known.
func (c Connection) statistics() *unix.TCPInfo {
	if c.raw == nil {
		return nil
	}
	var info *unix.TCPInfo
	var err error
	if cerr := c.raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); cerr != nil || err != nil {
		return nil
	}
	return info
}

// Watch returns a context that ends, with the cause [ErrNoContact], when nothing
// has arrived on the connection of a call for limit. stop must be called; it
// waits for the goroutine that watches.
func Watch(ctx context.Context, limit time.Duration) (watched context.Context, stop func()) {
	d, ok := SinceContact(ctx)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := service.Go(ctx, func(ctx context.Context) {
		check := time.NewTimer(limit - d)
		defer check.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-check.C:
			}
			d, ok := SinceContact(ctx)
			if !ok {
				return // closed: the call ends by itself
			}
			if d >= limit {
				cancel(ErrNoContact)
				return
			}
			check.Reset(limit - d) // the limit cannot be reached sooner
		}
	})
	return ctx, func() {
		cancel(context.Canceled)
		ended()
	}
}
