package authority

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"linktrial/orchestrator/security/admission"
)

// TellPlain answers, on a listener that is for TLS, those who speak without.
// What net/http says to them it says to HTTP/1 alone; agents speak HTTP/2 from
// the first byte, and would see a connection that ends. Closing it ends these
// answers, and waits for them.
func TellPlain(l net.Listener, hosts *admission.Hosts, log *slog.Logger) net.Listener {
	t := &teller{Listener: l, plain: make(chan net.Conn), closed: make(chan struct{})}
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: tellPlain(hosts), Protocols: p, ReadTimeout: plainLimit, WriteTimeout: plainLimit, IdleTimeout: time.Second,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(&handed{t}) }) // ends with an error when it is closed
	t.end = sync.OnceValue(func() error {
		close(t.closed)
		err := errors.Join(l.Close(), s.Close())
		serving.Wait()
		return err
	})
	return t
}

// plainLimit bounds a connection that is told off.
const plainLimit = 10 * time.Second

// tellPlain says that the scheme is wrong: to programs as the API says things,
// to browsers by sending them on, where the host is one of the orchestrator's.
func tellPlain(hosts *admission.Hosts) http.Handler {
	errorWriter := connect.NewErrorWriter()
	right := func(r *http.Request) string { return "https://" + r.Host }
	redirect := hosts.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, right(r)+r.URL.RequestURI(), http.StatusPermanentRedirect)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			redirect.ServeHTTP(w, r)
			return
		}
		// At any host: with TLS, nodes may call the orchestrator by any name.
		if errorWriter.IsSupported(r) {
			_ = errorWriter.Write(w, r, connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("the orchestrator at http://%s speaks TLS and was asked without: its URL is %s", r.Host, right(r)))) // a caller that is gone
			return
		}
		http.Error(w, "This orchestrator speaks TLS: its URL is "+right(r), http.StatusBadRequest)
	})
}

type teller struct {
	net.Listener
	plain  chan net.Conn
	closed chan struct{}
	end    func() error
}

func (t *teller) Accept() (net.Conn, error) {
	c, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sniffed{Conn: c, t: t}, nil
}

func (t *teller) Close() error { return t.end() }

// handed is the listener of those who speak plain.
type handed struct{ t *teller }

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.t.plain:
		return c, nil
	case <-h.t.closed:
		return nil, net.ErrClosed
	}
}

func (h *handed) Close() error   { return nil }
func (h *handed) Addr() net.Addr { return h.t.Addr() }

// sniffed is a connection whose first byte reports whether it is TLS. crypto/tls
// reads it in one goroutine.
type sniffed struct {
	net.Conn
	t     *teller
	begun bool
	given bool // to the others; what is closed here then stays open there
}

// NetConn is the connection below, as of [crypto/tls.Conn].
func (c *sniffed) NetConn() net.Conn { return c.Conn }

// handshake is the type of the first record of TLS (RFC 8446, section 5.1).
const handshake = 0x16

var errPlainCaller = errors.New("the caller speaks without TLS")

func (c *sniffed) Read(p []byte) (int, error) {
	if c.given {
		return 0, errPlainCaller
	}
	n, err := c.Conn.Read(p)
	if c.begun || n == 0 {
		return n, err
	}
	if c.begun = true; p[0] == handshake {
		return n, err
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return 0, err
	}
	select {
	case c.t.plain <- &replayed{Conn: c.Conn, first: append([]byte(nil), p[:n]...)}:
		c.given = true
	case <-c.t.closed:
	}
	return 0, errPlainCaller
}

func (c *sniffed) Write(p []byte) (int, error) {
	if c.given {
		return 0, errPlainCaller
	}
	return c.Conn.Write(p)
}

func (c *sniffed) Close() error {
	if c.given {
		return nil
	}
	return c.Conn.Close()
}

// replayed is a connection of which something has been read already.
type replayed struct {
	net.Conn
	first []byte
}

func (c *replayed) Read(p []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}
