package postgres

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A server that is not ready yet is asked seldom: its log has a line for each question.
func TestAwaitReadyIsSeldom(t *testing.T) {
	s := &Server{socket: t.TempDir()}
	l, err := net.Listen("unix", filepath.Join(s.socket, ".s.PGSQL.5432"))
	require.NoError(t, err)
	var asked atomic.Int64
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = c.Close() // as one that is starting up does, after a word
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ready, err := s.awaitReady(ctx, &child{exited: make(chan struct{})})
	require.False(t, ready)
	require.Error(t, err)
	require.NoError(t, l.Close())
	answering.Wait()
	require.Positive(t, asked.Load())
	require.LessOrEqual(t, asked.Load(), int64(18), "two connections for a question: with and without TLS")
}
