package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"linktrial/internal/process"
)

// forwarder carries control connections from the lab's control network to the
// orchestrator on the machine's loopback, byte for byte.
type forwarder struct {
	listener net.Listener
	target   string
	log      *slog.Logger

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
}

// startForwarder listens inside the control namespace. It ends when close is called.
func startForwarder(control, target string, log *slog.Logger) (*forwarder, error) {
	f := &forwarder{target: target, log: log, conns: map[net.Conn]struct{}{}}
	err := process.InNamespace(NamespacePath(control), func() error {
		var err error
		// The socket belongs to the namespace it is made in, whichever thread accepts on it later.
		f.listener, err = net.Listen("tcp", fmt.Sprintf("%s:%d", controlGateway, controlPort))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("control network: %w", err)
	}
	f.wg.Add(1)
	go f.accept()
	return f, nil
}

func (f *forwarder) accept() {
	defer f.wg.Done()
	for {
		c, err := f.listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				f.log.Error("control network stopped accepting", "error", err)
			}
			return
		}
		f.wg.Add(1)
		go f.carry(c)
	}
}

func (f *forwarder) carry(near net.Conn) {
	defer f.wg.Done()
	if !f.hold(near) {
		return
	}
	defer f.release(near)
	far, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", f.target)
	if err != nil {
		return // the agent tries again; the orchestrator may be starting
	}
	if !f.hold(far) {
		return
	}
	defer f.release(far)
	var both sync.WaitGroup
	both.Add(2)
	pipe := func(dst, src net.Conn) {
		defer both.Done()
		io.Copy(dst, src) // either end may close at any time, which is no error
		dst.Close()
		src.Close()
	}
	go pipe(far, near)
	go pipe(near, far)
	both.Wait()
}

func (f *forwarder) hold(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.conns == nil {
		c.Close()
		return false
	}
	f.conns[c] = struct{}{}
	return true
}

func (f *forwarder) release(c net.Conn) {
	c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

func (f *forwarder) close() {
	f.listener.Close()
	f.mu.Lock()
	for c := range f.conns {
		c.Close()
	}
	f.conns = nil
	f.mu.Unlock()
	f.wg.Wait()
}
