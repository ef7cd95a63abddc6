package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// half is one direction of a connection in memory: at most room bytes wait in it.
type half struct {
	mu    sync.Mutex
	cond  *sync.Cond
	data  []byte
	room  int
	most  int // bytes that waited at once
	ended bool
	err   error
}

func newHalf(room int) *half {
	h := &half{room: room}
	h.cond = sync.NewCond(&h.mu)
	return h
}

func (h *half) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.cond.Broadcast()
}

func (h *half) Read(b []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.data) == 0 && !h.ended && h.err == nil {
		h.cond.Wait()
	}
	if h.err != nil {
		return 0, h.err
	}
	if n = copy(b, h.data); n == 0 {
		return 0, io.EOF
	}
	h.data = h.data[n:]
	h.cond.Broadcast()
	return n, nil
}

func (h *half) Write(b []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n < len(b) {
		for len(h.data) == h.room && h.err == nil && !h.ended {
			h.cond.Wait()
		}
		if h.err != nil || h.ended {
			return n, syscall.EPIPE
		}
		k := min(len(b)-n, h.room-len(h.data))
		h.data = append(h.data, b[n:n+k]...)
		h.most = max(h.most, len(h.data))
		n += k
		h.cond.Broadcast()
	}
	return n, nil
}

// end is one end of a connection in memory.
type end struct {
	in, out *half
	reset   *reset
	closed  bool
}

type reset struct {
	mu    sync.Mutex
	watch []func(error)
}

// connection makes both ends of a connection.
func connection(room int) (a, b *end) {
	x, y, r := newHalf(room), newHalf(room), &reset{}
	return &end{in: x, out: y, reset: r}, &end{in: y, out: x, reset: r}
}

func (e *end) Read(b []byte) (int, error)  { return e.in.Read(b) }
func (e *end) Write(b []byte) (int, error) { return e.out.Write(b) }
func (e *end) CloseWrite() error           { e.out.do(func() { e.out.ended = true }); return nil }
func (e *end) Watch(failed func(error)) {
	e.reset.mu.Lock()
	defer e.reset.mu.Unlock()
	e.reset.watch = append(e.reset.watch, failed)
}

// Close waits until everything has been read, as a transport does.
func (e *end) Close() error {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	for len(e.out.data) > 0 && e.out.err == nil {
		e.out.cond.Wait()
	}
	e.closed = true
	return e.out.err
}

func (e *end) Abort() {
	for _, h := range []*half{e.in, e.out} {
		h.do(func() {
			if h.err == nil {
				h.err, h.data = syscall.ECONNRESET, nil
			}
		})
	}
	e.reset.mu.Lock()
	watch := e.reset.watch
	e.reset.mu.Unlock()
	for _, w := range watch {
		w(syscall.ECONNRESET)
	}
}

func (e *end) wasReset() bool {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	return e.in.err != nil
}

// carried is a client and a server with the pump between them.
type carried struct {
	client, server *end
	near, far      *end
	cancel         context.CancelCauseFunc
	done           chan error
}

func startCarrying(t *testing.T, room, buffer int, idle time.Duration) *carried {
	t.Helper()
	c := &carried{done: make(chan error, 1)}
	c.client, c.near = connection(room)
	c.far, c.server = connection(room)
	ctx, cancel := context.WithCancelCause(t.Context())
	c.cancel = cancel
	c.near.Watch(cancel)
	c.far.Watch(cancel)
	go func() { c.done <- carry(ctx, cancel, c.near, c.far, buffersOf(buffer), idle) }()
	return c
}

func mustWrite(t *testing.T, w io.Writer, b []byte) {
	t.Helper()
	if _, err := w.Write(b); err != nil {
		t.Error(err)
	}
}

// TestCarryBothWays: whatever the sizes, both directions arrive whole, at the same
// time, and carry returns when both have ended and everything was taken.
func TestCarryBothWays(t *testing.T) {
	for _, sizes := range [][4]int{{1, 1, 0, 0}, {1, 7, 1000, 1}, {100, 64, 5000, 70000}, {4096, 1, 300, 300}} {
		t.Run(fmt.Sprint(sizes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := startCarrying(t, sizes[0], sizes[1], time.Hour)
				r := rand.New(rand.NewPCG(1, uint64(sizes[2])))
				payload := func(n int) []byte {
					b := make([]byte, n)
					for i := range b {
						b[i] = byte(r.Uint32())
					}
					return b
				}
				up, down := payload(sizes[2]), payload(sizes[3])
				var all sync.WaitGroup
				for _, x := range []struct {
					from, to *end
					bytes    []byte
				}{{c.client, c.server, up}, {c.server, c.client, down}} {
					all.Go(func() {
						mustWrite(t, x.from, x.bytes)
						_ = x.from.CloseWrite()
					})
					all.Go(func() {
						got, err := io.ReadAll(x.to)
						if err != nil || !bytes.Equal(got, x.bytes) {
							t.Errorf("%d bytes of %d arrived, %v", len(got), len(x.bytes), err)
						}
					})
				}
				all.Wait()
				if err := <-c.done; err != nil {
					t.Error(err)
				}
				if c.client.wasReset() || c.server.wasReset() {
					t.Error("a stream was reset")
				}
			})
		})
	}
}

// TestCarryHalfClose: an end of one direction arrives after its bytes, and the
// other direction goes on for as long as it likes.
func TestCarryHalfClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCarrying(t, 10, 5, time.Hour)
		go func() {
			mustWrite(t, c.client, []byte("the question is long"))
			_ = c.client.CloseWrite()
		}()
		got, err := io.ReadAll(c.server)
		if err != nil || string(got) != "the question is long" {
			t.Fatalf("%q, %v", got, err)
		}
		for range 3 {
			time.Sleep(time.Minute)
			mustWrite(t, c.server, []byte("part"))
			b := make([]byte, 4)
			if _, err := io.ReadFull(c.client, b); err != nil || string(b) != "part" {
				t.Fatalf("%q, %v", b, err)
			}
		}
		_ = c.server.CloseWrite()
		if rest, err := io.ReadAll(c.client); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
		if err := <-c.done; err != nil {
			t.Error(err)
		}
	})
}

// TestCarryReset: a reset reaches the other side also while the pump waits for a
// reader that takes nothing, and what it holds is discarded.
func TestCarryReset(t *testing.T) {
	for name, act := range map[string]func(c *carried){
		"client":  func(c *carried) { c.client.Abort() },
		"server":  func(c *carried) { c.server.Abort() },
		"stopped": func(c *carried) { c.cancel(context.Canceled) },
	} {
		for _, blocked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s blocked %t", name, blocked), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := startCarrying(t, 10, 5, 0)
					var writing sync.WaitGroup
					if blocked {
						writing.Go(func() { _, _ = c.client.Write(make([]byte, 1000)) })
					}
					synctest.Wait()
					act(c)
					if err := <-c.done; err == nil {
						t.Error("no error")
					}
					writing.Wait()
					if !c.client.wasReset() || !c.server.wasReset() {
						t.Errorf("reset: client %t, server %t", c.client.wasReset(), c.server.wasReset())
					}
				})
			})
		}
	}
}

// TestCarryResetWhileClosing: the pump waits for the last bytes' delivery no
// longer than the connection lives.
func TestCarryResetWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startCarrying(t, 10, 5, 0)
		mustWrite(t, c.server, []byte("last"))
		_ = c.server.CloseWrite()
		_ = c.client.CloseWrite()
		synctest.Wait()
		select {
		case err := <-c.done:
			t.Fatalf("it ended (%v) although its last bytes have not been taken", err)
		default:
		}
		c.client.Abort()
		if err := <-c.done; err == nil {
			t.Error("no error")
		}
	})
}

// TestCarryBackPressure: a reader that stops stops the writer, after no more than
// what fits into both connections and the buffer; then everything arrives.
func TestCarryBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room, buffer = 100, 30
		c := startCarrying(t, room, buffer, 0)
		taken := 0
		go func() {
			for range 1000 {
				if _, err := c.client.Write([]byte{1}); err != nil {
					return
				}
				taken++
			}
			_ = c.client.CloseWrite()
		}()
		synctest.Wait()
		if want := 2*room + buffer; taken > want || taken < 2*room {
			t.Errorf("%d bytes were taken, expected %d at most", taken, want)
		}
		got, err := io.ReadAll(c.server)
		if err != nil || len(got) != 1000 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		_ = c.server.CloseWrite()
		if err := <-c.done; err != nil {
			t.Error(err)
		}
	})
}

// TestCarryIdle: a connection on which nothing moves ends after the limit, and one
// on which a byte moves now and then does not.
func TestCarryIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 10 * time.Minute
		begin := time.Now()
		c := startCarrying(t, 10, 5, limit)
		for range 30 {
			time.Sleep(limit - time.Second)
			mustWrite(t, c.server, []byte{1})
			if _, err := c.client.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		last := time.Now()
		if err := <-c.done; !errors.Is(err, errIdle) {
			t.Errorf("ended with %v", err)
		}
		if idle := time.Since(last); idle < limit || idle > 2*limit {
			t.Errorf("ended after %s without a byte, expected %s to %s", idle, limit, 2*limit)
		}
		if !c.client.wasReset() || !c.server.wasReset() {
			t.Error("not reset")
		}
		t.Logf("lasted %s", time.Since(begin))
	})
}
