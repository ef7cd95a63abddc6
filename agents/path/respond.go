package path

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"linktrial/executor"
	"linktrial/internal/backoff"
)

// Bounds of a responder. Who has no key gets no answer; who replays a question gets no more
// bytes than it sent.
const (
	lookStep       = 500 * time.Millisecond // at which the interface is looked at
	answersASecond = 200
	maxConnections = 16
	connectionTime = 2 * time.Minute // of one question over TCP, on the slowest radios
)

// Respond answers the questions of a run's leading node until ctx ends. Sockets that cannot
// be opened, or whose interface comes back as another one, are opened again.
func Respond(ctx context.Context, e End, state func(executor.PathQuestion) executor.NodeState, log *slog.Logger) {
	r := &responder{end: e, state: state, ports: portWatch{end: e}}
	defer r.ports.close()
	told := ""
	for ctx.Err() == nil {
		is := e.identity()
		udp, tcp, err := e.listen(ctx)
		if err != nil {
			if text := err.Error(); text != told && ctx.Err() == nil {
				told = text
				log.Warn("questions about the path cannot be answered for now", "port", Port, "error", err)
			}
			backoff.Sleep(ctx, lookStep)
			continue
		}
		told = ""
		sctx, stop := context.WithCancel(ctx)
		closed := context.AfterFunc(sctx, func() {
			_ = udp.Close()
			_ = tcp.Close()
		})
		var serving sync.WaitGroup
		serving.Go(func() { r.serveUDP(sctx, udp); stop() })
		serving.Go(func() { r.serveTCP(sctx, tcp); stop() })
		for backoff.Sleep(sctx, lookStep) && e.identity() == is {
		}
		stop()
		serving.Wait()
		closed()
	}
}

type responder struct {
	end   End
	state func(executor.PathQuestion) executor.NodeState
	ports portWatch
}

// serveUDP returns when the socket is closed.
func (r *responder) serveUDP(ctx context.Context, c *net.UDPConn) {
	b := make([]byte, 1<<16)
	pace := rate.NewLimiter(answersASecond, answersASecond)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		m, bad := decodeDatagram(&r.end.Key, b[:n])
		if err != nil || bad != nil || m.kind != question || !pace.Allow() {
			continue
		}
		a := r.answer(ctx, &m, n-headBytes)
		a.padding = n - headBytes - len(a.text)
		_, _ = c.WriteToUDPAddrPort(a.padded(&r.end.Key), from) // a loss like any other: the question comes again
	}
}

// answer answers a question with a text of most bytes at most.
func (r *responder) answer(ctx context.Context, q *message, most int) message {
	var asked executor.PathQuestion
	_ = json.Unmarshal(q.text, &asked) // one of a later version asks for nothing
	s := r.state(asked)
	if asked.Port != nil {
		s.Port = r.ports.seen(ctx, *asked.Port)
	}
	return message{kind: answer, nonce: q.nonce, text: fit(s, min(most, maxText))}
}

// fit encodes a node's state in so many bytes: messages are cut first, then listeners are
// left out from the end.
func fit(s executor.NodeState, most int) []byte {
	for _, cut := range []int{-1, 80, 20, 0} {
		c := s
		c.Listeners = append([]executor.ListenerReport(nil), s.Listeners...)
		for i := range c.Listeners {
			l := &c.Listeners[i]
			l.Message, l.Outage = shorten(l.Message, cut), shorten(l.Outage, max(cut, 1))
		}
		if cut >= 0 {
			c.Fault = shorten(c.Fault, max(cut, 1))
		}
		for last := cut == 0; ; c.Listeners = c.Listeners[:len(c.Listeners)-1] {
			b, err := json.Marshal(c)
			if err == nil && len(b) <= most {
				return b
			}
			if !last || len(c.Listeners) == 0 {
				break
			}
		}
	}
	return nil
}

func shorten(s string, most int) string {
	if most < 0 || len(s) <= most {
		return s
	}
	return s[:most]
}

// serveTCP returns when the listener is closed and all connections have ended.
func (r *responder) serveTCP(ctx context.Context, l net.Listener) {
	var running sync.WaitGroup
	defer running.Wait()
	free := make(chan struct{}, maxConnections)
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			backoff.Sleep(ctx, 10*time.Millisecond) // of files that the node has not
			continue
		}
		select {
		case free <- struct{}{}:
			running.Go(func() {
				defer func() { <-free }()
				r.converse(ctx, c)
			})
		default:
			_ = c.Close()
		}
	}
}

// converse answers one question over a connection: first what the node says, which may
// pass where full packets do not, then as much padding as the question has.
func (r *responder) converse(ctx context.Context, c net.Conn) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	_ = c.SetDeadline(time.Now().Add(connectionTime))
	m, err := readMessage(c, &r.end.Key)
	if err != nil || m.kind != question {
		return
	}
	a := r.answer(ctx, &m, maxText)
	a.padding = m.padding
	if _, err := c.Write(a.encode(&r.end.Key)); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, c, int64(m.padding)); err != nil {
		return
	}
	_, _ = c.Write(make([]byte, m.padding)) // the other end waits for it
}

// readMessage reads a message without its padding from a stream.
func readMessage(r io.Reader, key *Key) (message, error) {
	b := make([]byte, headBytes, headBytes+256)
	if _, err := io.ReadFull(r, b); err != nil {
		return message{}, err
	}
	n, err := textLength(b)
	if err != nil {
		return message{}, err
	}
	b = append(b, make([]byte, n)...)
	if _, err := io.ReadFull(r, b[headBytes:]); err != nil {
		return message{}, err
	}
	return decode(key, b)
}
