package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"

	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// Codes of the application, in a packet that closes a connection.
const (
	codeDone    quic.ApplicationErrorCode = 0
	codeAborted quic.ApplicationErrorCode = 1
)

// listener accepts the connections of one socket, which lasts as long as one of
// them does.
type listener struct {
	*quic.EarlyListener
	transport *quic.Transport
	users     atomic.Int32 // connections, and the listener itself
	close     func() error
}

func listen(ctx context.Context, p *contract.Parameters) (harness.Listener, error) {
	s, err := newSettings(p)
	if err != nil {
		return nil, err
	}
	logs, err := wantsLog(p)
	if err != nil {
		return nil, err
	}
	c, err := certificate()
	if err != nil {
		return nil, err
	}
	s.tls.Certificates = []tls.Certificate{c}
	if ms := p.Limits.ConnectMS; ms > 0 {
		// A client that vanished in the handshake is forgotten (driver contract, L3).
		s.quic.HandshakeIdleTimeout = min(forever, time.Duration(ms)*time.Millisecond)
	}
	sock, err := openServer(ctx, p)
	if err != nil {
		return nil, err
	}
	l := &listener{transport: &quic.Transport{Conn: sock}}
	if logs {
		withLogs(p, l.transport, s.quic)
	}
	// Early: the first byte goes out with the server's handshake. Data of the
	// client before the handshake (0-RTT) is not accepted.
	if l.EarlyListener, err = l.transport.ListenEarly(s.tls, s.quic); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), sock.Close())
	}
	l.users.Store(1)
	l.close = sync.OnceValue(func() error {
		err := l.EarlyListener.Close()
		l.release()
		return err
	})
	return l, nil
}

// Close ends accepting. What was accepted lives on.
func (l *listener) Close() error { return l.close() }

// release closes the socket when nobody needs it any more.
func (l *listener) release() {
	if l.users.Add(-1) > 0 {
		return
	}
	if err := errors.Join(l.transport.Close(), l.transport.Conn.Close()); err != nil {
		slog.Debug("close the socket", "error", err)
	}
}

// Accept opens the stream of the next connection: the server has the first byte.
func (l *listener) Accept() (harness.Conn, error) {
	for {
		c, err := l.EarlyListener.Accept(context.Background())
		if err != nil {
			return nil, err
		}
		s, err := c.OpenStream()
		if err == nil {
			l.users.Add(1)
			log, _ := c.Context().Value(logKey{}).(*logFile)
			return &conn{Stream: s, c: c, log: log, release: sync.OnceFunc(l.release)}, nil
		}
		// One connection that is gone already is not the end of the server.
		slog.Warn("connection dropped", "remote", c.RemoteAddr().String(), "error", err)
		_ = c.CloseWithError(codeAborted, "no stream")
	}
}

// redialPause keeps a server that is too busy to accept from being asked in a loop.
const redialPause = 100 * time.Millisecond

func dial(ctx context.Context, p *contract.Parameters) (harness.Conn, error) {
	s, err := newSettings(p)
	if err != nil {
		return nil, err
	}
	logs, err := wantsLog(p)
	if err != nil {
		return nil, err
	}
	s.tls.InsecureSkipVerify = true // who the other end is, is not what is measured
	sock, remote, err := openClient(ctx, p)
	if err != nil {
		return nil, err
	}
	k := &conn{client: true}
	if on, ok := p.Options["events"].(bool); !ok || on {
		k.seen = &recovery{}
	}
	s.quic.Tracer = clientTracer(p, k.seen, logs)
	t := &quic.Transport{Conn: sock}
	k.release = sync.OnceFunc(func() {
		if err := errors.Join(t.Close(), sock.Close()); err != nil {
			slog.Debug("close the socket", "error", err)
		}
	})
	dctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sock.listenFor(func(err error) { cancel(whileConnecting(err)) })
	for {
		k.c, err = t.Dial(dctx, remote, s.tls, s.quic)
		var busy *quic.TransportError
		if !errors.As(err, &busy) || busy.ErrorCode != quic.ConnectionRefused {
			break
		}
		select { // its queue of connections is full
		case <-dctx.Done():
		case <-time.After(redialPause):
		}
	}
	if err == nil {
		k.Stream, err = k.c.AcceptStream(dctx)
	}
	if err != nil {
		if k.c != nil {
			_ = k.c.CloseWithError(codeAborted, "no stream")
		}
		k.release()
		return nil, ended(err)
	}
	sock.listenFor(k.portClosed(sock))
	return k, nil
}

// whileConnecting is nil for what may pass.
func whileConnecting(err error) error {
	for _, e := range []error{syscall.ECONNREFUSED, syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return err
		}
	}
	return nil
}

// A connection ends when the other end's node has said so often that the port
// is closed, and nothing has arrived for so long. Nothing proves who said so, so
// a connection that is alive takes no notice.
const (
	refusals = 3
	quietFor = 3 * time.Second
)

func (c *conn) portClosed(s *socket) func(error) {
	var n atomic.Int32
	return func(err error) {
		if errors.Is(err, syscall.ECONNREFUSED) && n.Add(1) >= refusals && s.quiet() > quietFor {
			s.listenFor(nil)
			go func() { _ = c.c.CloseWithError(codeAborted, "the other end's port is closed") }()
		}
	}
}

// conn carries the transfer over one stream of a connection.
type conn struct {
	*quic.Stream
	c       *quic.Conn
	client  bool
	seen    *recovery // nil without events, and at the server, which sends next to nothing
	log     *logFile  // of a server whose plan asks for logs; nil elsewhere
	release func()
}

// Identify implements [harness.Identified].
func (c *conn) Identify(transfer string) {
	if c.log != nil {
		c.log.name(transfer)
	}
}

// Read is the stream's, with the contract's codes.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Stream.Read(b)
	return n, ended(err)
}

// Write is the stream's, with the contract's codes. It returns when all but what
// fits into one packet has been put into packets: little is ever unsent (D6).
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Stream.Write(b)
	return n, ended(err)
}

// ended gives the errors of a connection that is over their code.
func ended(err error) error {
	var (
		application *quic.ApplicationError
		transport   *quic.TransportError
		stream      *quic.StreamError
		reset       *quic.StatelessResetError
		idle        *quic.IdleTimeoutError
	)
	if errors.As(err, &application) || errors.As(err, &transport) || errors.As(err, &stream) || errors.As(err, &reset) || errors.As(err, &idle) {
		return harness.Failf(contract.CodeReset, "the connection ended: %w", err)
	}
	return err
}

// closeWithin bounds the time until the other end has heard of a close.
const closeWithin = 3 * time.Second

// Close ends the stream, and waits until the other end has ended it, too: then
// everything has been acknowledged, and neither end sends anything later. The
// server, whose client has ended the stream already, waits for the client to
// close the connection.
func (c *conn) Close() error {
	defer c.release()
	defer func() { _ = c.c.CloseWithError(codeDone, "") }()
	if err := c.Stream.Close(); err != nil {
		return ended(err)
	}
	if !c.client {
		t := time.NewTimer(closeWithin)
		defer t.Stop()
		select {
		case <-c.c.Context().Done():
		case <-t.C:
		}
		return nil
	}
	if err := c.SetReadDeadline(time.Now().Add(closeWithin)); err != nil {
		return err
	}
	_, _ = c.Stream.Read(make([]byte, 1))
	return nil
}

// Abort closes the connection at once: what has not been sent is not.
func (c *conn) Abort() {
	_ = c.c.CloseWithError(codeAborted, "the transfer was aborted")
	c.release()
}

func (c *conn) Info() *contract.Info {
	s := c.c.ConnectionState()
	return &contract.Info{Implementation: implementation(), Detail: map[string]string{
		"version":      s.Version.String(),
		"congestion":   "reno", // the library has no other
		"cipher":       tls.CipherSuiteName(s.TLS.CipherSuite),
		"key_exchange": s.TLS.CurveID.String(),
		"segmentation": map[bool]string{true: "on", false: "off"}[s.GSO],
	}}
}

func (c *conn) Sample(s *contract.Sample, sender bool) {
	t := c.c.ConnectionStats()
	set := func(to **int64, v int64) { *to = &v }
	if t.SmoothedRTT > 0 {
		set(&s.SRTTUS, t.SmoothedRTT.Microseconds())
		set(&s.RTTVarUS, t.MeanDeviation.Microseconds())
		set(&s.MinRTTUS, t.MinRTT.Microseconds())
	}
	s.More = map[string]float64{
		"packets_sent":     float64(t.PacketsSent),
		"packets_received": float64(t.PacketsReceived),
	}
	if !sender {
		return
	}
	set(&s.CwndBytes, int64(t.CongestionWindow))
	if c.seen == nil {
		return
	}
	f := c.seen.counters()
	set(&s.AckedBytes, f.acked)
	set(&s.FlightBytes, f.flight)
	set(&s.Retransmits, f.retransmits)
	set(&s.RetransmittedBytes, f.again)
	set(&s.Timeouts, f.timeouts)
	set(&s.LossEvents, f.lost)
	s.More["spurious_losses"] = float64(f.spurious)
	if f.packet > 0 {
		s.More["packet_bytes"] = float64(f.packet)
	}
}
