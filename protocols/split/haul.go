package main

import (
	"context"
	"sync"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
	"linktrial/protocols/haul"
)

// listenHaul accepts connections of haul.
func listenHaul(p *contract.Parameters) (*side, error) {
	local, err := harness.AddrPort(p.Local, "local")
	if err != nil {
		return nil, err
	}
	o, err := haulOptions(p)
	if err != nil {
		return nil, err
	}
	l, err := haul.Listen(local, o)
	if err != nil {
		return nil, err
	}
	return &side{
		accept: func() (harness.Stream, error) {
			c, err := l.Accept()
			if err != nil {
				return nil, err
			}
			return newHaul(c), nil
		},
		close: l.Close,
	}, nil
}

// dialHaul connects to the next address.
func dialHaul(ctx context.Context, p *contract.Parameters) (harness.Stream, error) {
	remote, err := harness.AddrPort(p.Remote, "remote")
	if err != nil {
		return nil, err
	}
	o, err := haulOptions(p)
	if err != nil {
		return nil, err
	}
	c, err := haul.Dial(ctx, anyAddress, remote, o)
	if err != nil {
		return nil, err
	}
	return newHaul(c), nil
}

// haulStream is one side of a connection over haul: its stream 0.
type haulStream struct {
	*haul.Stream
	c       *haul.Conn
	aborted chan struct{}
	once    sync.Once // to close aborted
}

func newHaul(c *haul.Conn) *haulStream {
	return &haulStream{Stream: c.Stream(0), c: c, aborted: make(chan struct{})}
}

// Close waits until the other end has everything, and knows that this one has.
func (s *haulStream) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-s.aborted:
			cancel()
		case <-ctx.Done():
		}
	}()
	return s.c.Close(ctx)
}

// Abort ends the connection; the other end learns of it, where a packet of it arrives.
func (s *haulStream) Abort() {
	s.once.Do(func() {
		close(s.aborted)
		s.c.Abort("the relay's other side was reset")
	})
}

// Watch waits for the connection's end.
func (s *haulStream) Watch(failed func(error)) {
	go func() {
		if err := s.c.Wait(); err != nil {
			failed(err)
		}
	}()
}
