package session

import (
	"context"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// listen returns an address, and the connections that are made to it.
func listen(t *testing.T) (address string, made <-chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	c := make(chan net.Conn, 4)
	go func() {
		defer close(c)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c <- conn
		}
	}()
	return l.Addr().String(), c
}

// requireReset fails unless a connection ends with an RST.
func requireReset(t *testing.T, c net.Conn) {
	t.Helper()
	defer c.Close()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestResetEndsConnections(t *testing.T) {
	address, made := listen(t)
	d := newDialer()
	c, err := d.DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	late := d.reset()
	require.Positive(t, late, "the round trip of an open connection is known")
	require.Less(t, late, unknownLate)
	requireReset(t, <-made)
	require.ErrorIs(t, c.Close(), net.ErrClosed)
	require.Zero(t, d.open())
	require.Zero(t, d.reset())
}

// A connection that is being made when all are ended is not made, whether it hears of
// that before or after it is there: its handshake would go on in the trial.
func TestResetEndsConnectionsBeingMade(t *testing.T) {
	address, made := listen(t)
	for _, hears := range []bool{true, false} {
		begun, release := make(chan struct{}), make(chan struct{})
		d := newDialer()
		connect := d.connect
		d.connect = func(ctx context.Context, network, address string) (net.Conn, error) {
			close(begun)
			if hears {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			<-release
			return connect(context.WithoutCancel(ctx), network, address)
		}
		result := make(chan error)
		go func() {
			_, err := d.DialContext(t.Context(), "tcp", address)
			result <- err
		}()
		<-begun
		require.Equal(t, unknownLate, d.reset())
		close(release)
		err := <-result
		if hears {
			require.ErrorIs(t, err, context.Canceled)
			continue
		}
		require.ErrorIs(t, err, errReset)
		requireReset(t, <-made)
		require.Zero(t, d.open())
	}
}
