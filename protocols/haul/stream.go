package haul

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"linktrial/protocols/haul/core"
)

// writeChunk is the longest message that a stream of bytes is cut into: long
// enough that its head costs nothing, short enough that others need not wait.
const writeChunk = 16 << 10

// Stream is the reliable sequenced class of a stream, read and written as bytes.
// One goroutine may read while another writes.
type Stream struct {
	conn *Conn
	id   uint16

	mu       sync.Mutex // of the fields below
	deadline time.Time

	rest  []byte // read side only
	ended bool
}

// Stream opens a stream of bytes over the connection's stream id. Both ends
// open it by the same number; messages of that stream and class then belong to
// it. The same number gives the same Stream.
func (c *Conn) Stream(id uint16) *Stream {
	c.end.Lock()
	defer c.end.Unlock()
	s := c.streams[id]
	if s == nil {
		s = &Stream{conn: c, id: id}
		c.streams[id] = s
		c.core.Bytewise(id)
	}
	return s
}

// SetDeadline bounds all waiting and later reads and writes, which then fail
// with [os.ErrDeadlineExceeded]; the zero value is no bound.
func (s *Stream) SetDeadline(t time.Time) error {
	s.mu.Lock()
	s.deadline = t
	s.mu.Unlock()
	s.conn.end.Lock()
	defer s.conn.end.Unlock()
	s.conn.tell()
	return nil
}

// until waits as [Conn.wait] does, with the stream's deadline as it is then.
func (s *Stream) until(wait func(ctx context.Context, deadline time.Time) error) error {
	for {
		s.mu.Lock()
		deadline := s.deadline
		s.mu.Unlock()
		err := wait(context.Background(), deadline)
		s.mu.Lock()
		changed := !s.deadline.Equal(deadline)
		s.mu.Unlock()
		if !changed || !errors.Is(err, errAgain) {
			return err
		}
	}
}

var errAgain = errors.New("the deadline has changed")

// moved reports whether the deadline is another than the one waited with.
func (s *Stream) moved(deadline time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.deadline.Equal(deadline) {
		return errAgain
	}
	return nil
}

// Read reads what has arrived; it waits until there is something. [io.EOF]: the
// other end has finished the stream, or closed the connection.
func (s *Stream) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if n = s.copyRest(b); n > 0 {
		return n, nil
	}
	if !s.ended {
		err := s.until(func(ctx context.Context, deadline time.Time) error {
			return s.conn.wait(ctx, deadline, func() (bool, error) {
				// All that fits at once: what follows from a read costs the same
				// for a packet's bytes and for a buffer's.
				for n < len(b) && !s.ended {
					r, ok := s.conn.core.NextOf(func(r *core.Received) bool { return r.Stream == s.id && r.Class == ReliableSequenced })
					if !ok {
						break
					}
					s.rest, s.ended = r.Data, r.End
					n += s.copyRest(b[n:])
				}
				if n > 0 || s.ended {
					return true, nil
				}
				if err := s.conn.failure(); err != nil {
					return false, err
				}
				return false, s.moved(deadline)
			})
		})
		if err != nil {
			return 0, err
		}
		s.conn.read()
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// copyRest copies what is left of the last message.
func (s *Stream) copyRest(b []byte) int {
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n
}

// Write queues bytes; it waits while the queue is full.
func (s *Stream) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		err := s.until(func(ctx context.Context, deadline time.Time) error {
			return s.conn.room(ctx, deadline, func() error { return s.moved(deadline) })
		})
		if err != nil {
			return n, err
		}
		part := b[:min(len(b), writeChunk)]
		s.conn.do(func(now time.Duration) {
			if err = s.conn.failure(); err != nil {
				return
			}
			// What follows at once must not look like the end.
			s.conn.core.WriterWaits(len(part) < len(b) || s.conn.waiters > 0)
			err = s.conn.core.Send(now, core.Message{Stream: s.id, Class: ReliableSequenced, Data: part})
		})
		if err != nil {
			return n, closedError(err)
		}
		n += len(part)
		b = b[len(part):]
	}
	return n, nil
}

// CloseWrite finishes the stream: the other end reads [io.EOF] after what was written.
func (s *Stream) CloseWrite() error {
	s.conn.do(func(time.Duration) { s.conn.core.Finish(s.id, ReliableSequenced, 0) })
	return nil
}
