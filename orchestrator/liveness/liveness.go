// Package liveness says how long nothing has been heard of the other end of a call's
// connection, from what the kernel notes of it: a cable that is pulled ends no
// connection for minutes. Comes in: a server's connections. Goes out: a duration,
// or a context that ends with a silence.
//
// The kernel's probes ask the other kernel, which answers whatever its program
// does, and anything that arrives counts as a word. HTTP/2's pings, which could
// do the same, wait in line behind what the other end sends: on a slow radio a
// delivery of records keeps them from being answered for minutes, and a server
// that gives up after seconds would cut every delivery. Nothing is cut here:
// after a silence a connection goes on, and what was on its way arrives.
//
// Where control shares the radio, a trial meets no probes: the agent has reset
// its connections before it. Where that reset was lost on the way, the first
// probe is answered with another.
package liveness

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Probes are the kernel's on an idle connection (tcp(7)): often enough that a
// silence of [Limit] means something, and for longer than the default before
// the connection is given up, for a radio's link comes back.
var Probes = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: 3 * time.Second, Count: 60}

// Limit is the silence after which an end counts as cut off: three probes got lost.
const Limit = 8 * time.Second

// ErrSilent is the cause of a context that ended with a silence.
var ErrSilent = errors.New("nothing is heard of the other end of the connection")

type connKey struct{}

// WithConn notes a connection in the context of its calls
// (net/http.Server.ConnContext). Of one that is no TCP nothing will be known.
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

// Silence is how long nothing, not even an acknowledgement, has come on the
// connection of a call; false where nothing is known of it.
func Silence(ctx context.Context) (time.Duration, bool) {
	raw, ok := ctx.Value(connKey{}).(syscall.RawConn)
	if !ok {
		return 0, false
	}
	var info *unix.TCPInfo
	var err error
	if cerr := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); cerr != nil || err != nil {
		return 0, false // it is closed, and its calls end by themselves
	}
	return time.Duration(min(info.Last_data_recv, info.Last_ack_recv)) * time.Millisecond, true
}

// Watch is a context that ends, with the cause [ErrSilent], when the connection
// of a call has been silent for a while. stop must be called; it waits for
// what watches.
func Watch(ctx context.Context, limit time.Duration) (watched context.Context, stop func()) {
	d, ok := Silence(ctx)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		look := time.NewTimer(limit - d)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			d, ok := Silence(ctx)
			if !ok {
				return // closed: the call ends by itself
			}
			if d >= limit {
				cancel(ErrSilent)
				return
			}
			look.Reset(limit - d) // no sooner can it have been silent for so long
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}
