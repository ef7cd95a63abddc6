package liveness

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"linktrial/orchestrator/liveness/livenesstest"
)

func TestMain(m *testing.M) {
	// The thread that starts children lives as long as the process, by design.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("linktrial/internal/process.init.func1.1"))
}

// joined returns this side's end of a connection over a cable.
func joined(t *testing.T) (net.Conn, *livenesstest.Cable) {
	t.Helper()
	cable := livenesstest.New(t)
	var l net.Listener
	require.NoError(t, cable.Here(func() (err error) {
		l, err = (&net.ListenConfig{KeepAliveConfig: Probes}).Listen(t.Context(), "tcp", livenesstest.Address+":7700")
		return err
	}))
	defer l.Close()
	accepted := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		if err != nil {
			c = nil
		}
		accepted <- c
	}()
	var there net.Conn
	require.NoError(t, cable.There(func() (err error) {
		there, err = net.DialTimeout("tcp", l.Addr().String(), 10*time.Second)
		return err
	}))
	t.Cleanup(func() { there.Close() })
	here := <-accepted
	require.NotNil(t, here)
	t.Cleanup(func() { here.Close() })
	return here, cable
}

// An idle connection counts as connected. One whose cable is pulled does not, and
// when the cable is back it is the same connection.
func TestPulledCable(t *testing.T) {
	conn, cable := joined(t)
	ctx := WithConn(t.Context(), tls.Server(conn, nil))
	idle, stop := Watch(ctx, Limit)
	defer stop()
	require.Eventually(t, func() bool {
		d, ok := SinceContact(ctx)
		require.True(t, ok)
		return d > time.Second
	}, 30*time.Second, 10*time.Millisecond, "the kernel notes no silence")
	require.Eventually(t, func() bool {
		d, _ := SinceContact(ctx)
		return d < time.Second
	}, 30*time.Second, 10*time.Millisecond, "no probe was answered")
	require.NoError(t, idle.Err())

	cable.Pull(true)
	began := time.Now()
	select {
	case <-idle.Done():
	case <-time.After(60 * time.Second):
		t.Fatal("a pulled cable is not noticed")
	}
	require.ErrorIs(t, context.Cause(idle), ErrNoContact)
	require.False(t, Of(ctx).Open())
	t.Logf("noticed after %s", time.Since(began).Round(time.Millisecond))
	cable.Pull(false)
	require.Eventually(t, func() bool {
		d, ok := SinceContact(ctx)
		return ok && d < Limit/2
	}, 60*time.Second, 10*time.Millisecond, "the connection did not outlive it")
	require.True(t, Of(ctx).Open())
}

func TestConnectionsThatCannotBeMeasured(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	_, ok := SinceContact(WithConn(t.Context(), a))
	require.False(t, ok)
	_, ok = Of(t.Context()).DataReceived()
	require.False(t, ok)
	require.False(t, Of(t.Context()).Open())
	ctx, stop := Watch(t.Context(), time.Nanosecond)
	stop()
	require.NoError(t, ctx.Err(), "what is not watched is not ended")

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	known := WithConn(t.Context(), c)
	_, ok = SinceContact(known)
	require.True(t, ok)
	watched, stop := Watch(known, time.Hour)
	stop()
	require.ErrorIs(t, context.Cause(watched), context.Canceled)
	there, err := l.Accept()
	require.NoError(t, err)
	other := Of(WithConn(t.Context(), there))
	require.True(t, other.Open())
	require.True(t, Of(known).Open())
	require.NoError(t, c.Close())
	_, ok = SinceContact(known)
	require.False(t, ok, "of a closed connection nothing is known")
	require.False(t, Of(known).Open())
	_, err = there.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.False(t, other.Open(), "the other end has closed it")
	require.NoError(t, there.Close())
}
