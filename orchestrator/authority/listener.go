package authority

import (
	"errors"
	"io"
	"net"
	"time"
)

// TellPlain answers, on a listener that is for TLS, those who speak without.
// What net/http says to them it says to HTTP/1 alone; agents speak HTTP/2 from
// the first byte, and would see a connection that ends.
func TellPlain(l net.Listener) net.Listener { return &teller{l} }

type teller struct{ net.Listener }

func (l *teller) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &toldConn{Conn: c}, nil
}

type toldConn struct {
	net.Conn
	begun bool // by Read, which crypto/tls calls one at a time
}

// handshake is the type of the first record of TLS (RFC 8446, section 5.1).
const handshake = 0x16

const plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
	"This orchestrator speaks TLS: its URL begins with https://\n"

var errPlainCaller = errors.New("the caller speaks without TLS")

// lingering is for the caller to read the answer: closing a connection with
// unread bytes resets it, and the answer would be lost.
const lingering = 500 * time.Millisecond

func (c *toldConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.begun || n == 0 {
		return n, err
	}
	if c.begun = true; p[0] == handshake {
		return n, err
	}
	if err := c.SetDeadline(time.Now().Add(lingering)); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(c.Conn, plainAnswer); err != nil {
		return 0, err
	}
	if t, ok := c.Conn.(*net.TCPConn); ok {
		if err := t.CloseWrite(); err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(t, 1<<16))
		}
	}
	return 0, errPlainCaller
}
