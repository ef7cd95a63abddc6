// Package admission bounds what callers of the orchestrator may take of it before
// and after it is known who they are: open connections, calls under way, the bytes
// of a request and the time without any; and it refuses requests for other hosts than
// the orchestrator ([Hosts]). Comes in: the listener, connections and requests of the
// HTTP server, and from those who check certificates and logins that a caller is
// known. Goes out: requests within the bounds; the rest is closed or refused.
package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
)

// Bounds of what callers may take. An address is an IPv6 /64, too.
type Bounds struct {
	// Connections that may be open, and those of one address on which nobody is
	// known yet. Where one more arrives, the oldest on which nobody is known is closed.
	Connections, UnknownConnections int
	// UnknownCalls that may be under way from one address while it is not known who
	// makes them, and AllUnknownCalls from all addresses. Calls with credentials, which
	// are checked before anything else, are counted apart from those without, with the
	// same bounds: anonymous callers take no place of theirs.
	UnknownCalls, AllUnknownCalls int
	// KnownCalls that may be under way of one node, user or token.
	KnownCalls int
	// UnknownBytes of a request that are read while it is not known who makes it.
	UnknownBytes int64
	// UnknownTime is how long the whole request may take to arrive, and UnknownAnswer
	// how long the answer may take to leave, while it is not known who makes it.
	UnknownTime, UnknownAnswer time.Duration
	// StalledTime is how long nothing may arrive of the request of a known caller.
	StalledTime time.Duration
}

// DefaultBounds returns the bounds of an orchestrator that authenticates its callers.
func DefaultBounds() Bounds {
	return Bounds{
		Connections: 2048, UnknownConnections: 128, UnknownCalls: 64, AllUnknownCalls: 512, KnownCalls: 256,
		UnknownBytes: UnknownBytes, UnknownTime: 20 * time.Second,
		UnknownAnswer: 10 * time.Minute, // the pages are served to everybody, also over a radio
		// A radio's link may be away for as long as the kernel's keepalive probes allow
		// (orchestrator/liveness).
		StalledTime: 3 * time.Minute,
	}
}

// UnknownBytes is how many bytes of a request are read before it is known who calls.
const UnknownBytes = 64 << 10

// Gate applies [Bounds]. Its methods may be called from several goroutines.
type Gate struct {
	bounds Bounds
	log    *slog.Logger

	connections connections

	mu    sync.Mutex
	calls map[string]int // under way, by address where unknown and by name where known
	all   map[bool]int   // of unknown callers, with credentials and without

	closed, refused atomic.Int64
	told            sometimes
}

// New returns a gate with the bounds.
func New(b Bounds, log *slog.Logger) *Gate {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &Gate{bounds: b, log: log, calls: map[string]int{}, all: map[bool]int{}}
	g.connections.gate = g
	return g
}

// Counts of a gate.
type Counts struct {
	Connections int   // open now
	Calls       int   // under way now, of callers who are not known
	Closed      int64 // connections that were closed to admit others
	Refused     int64 // calls that were refused because too many were under way
}

// Counts returns what is open now, and what was refused so far.
func (g *Gate) Counts() Counts {
	g.mu.Lock()
	calls := g.all[true] + g.all[false]
	g.mu.Unlock()
	return Counts{Connections: g.connections.open(), Calls: calls, Closed: g.closed.Load(), Refused: g.refused.Load()}
}

// Network returns what one machine has one of: its address, or with IPv6 the /64.
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	p, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return p.String()
}

func networkOf(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return hostPort
	}
	return Network(host)
}

// call is one request under way.
type call struct {
	gate    *Gate
	key     string // of gate.calls; empty: it is not counted
	claims  bool   // it has credentials, which may be false ones
	known   atomic.Bool
	control *http.ResponseController
	conn    *conn // nil: of another listener, in a test
}

type callKey struct{}

// ErrBusy says that too many calls are under way.
var ErrBusy = errors.New("too many calls are under way")

// retryAfter is what is said to those who are refused, in seconds.
const retryAfter = 5

// Known notes that it is known who makes the call that ctx belongs to: the bounds
// on those who are not known do not apply to it any more. The name is counted with
// [Bounds.KnownCalls]; an empty one, where nobody is asked who they are, is not.
func Known(ctx context.Context, name string) error {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil || c.known.Load() {
		return nil
	}
	g := c.gate
	g.mu.Lock()
	if name != "" && g.calls[name] >= g.bounds.KnownCalls {
		g.mu.Unlock()
		g.refuse(name, g.bounds.KnownCalls)
		return busy(fmt.Errorf("%w: %s has %d, expected fewer: end some, then try again", ErrBusy, name, g.bounds.KnownCalls))
	}
	g.give(c)
	if c.key = name; name != "" {
		g.calls[name]++
	}
	g.mu.Unlock()
	c.known.Store(true)
	if c.conn != nil {
		c.conn.prove()
	}
	// A stream or a poll may last; a controller that knows no deadlines has none.
	_ = c.control.SetWriteDeadline(time.Time{})
	return nil
}

// take counts the call of an address, or says why not.
func (g *Gate) take(c *call, address string) error {
	key := address
	if c.claims {
		key += " with credentials"
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.calls[key] >= g.bounds.UnknownCalls:
		return busy(fmt.Errorf("%w: %d from %s before it is known who makes them: try again in %d s", ErrBusy, g.bounds.UnknownCalls, address, retryAfter))
	case g.all[c.claims] >= g.bounds.AllUnknownCalls:
		return busy(fmt.Errorf("%w: %d from all addresses before it is known who makes them: try again in %d s", ErrBusy, g.bounds.AllUnknownCalls, retryAfter))
	}
	c.key = key
	g.calls[key]++
	g.all[c.claims]++
	return nil
}

// give takes a call from the counts; g.mu is held.
func (g *Gate) give(c *call) {
	if c.key == "" {
		return
	}
	if !c.known.Load() {
		g.all[c.claims]--
	}
	if g.calls[c.key]--; g.calls[c.key] == 0 {
		delete(g.calls, c.key)
	}
	c.key = ""
}

func (g *Gate) leave(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(c)
}

func busy(err error) error {
	e := connect.NewError(connect.CodeResourceExhausted, err)
	e.Meta().Set("Retry-After", strconv.Itoa(retryAfter))
	return e
}

// refuse counts a call that is refused, and logs it once in a while.
func (g *Gate) refuse(who string, most int) {
	n := g.refused.Add(1)
	if g.told.due() {
		g.log.Warn("calls are refused: too many are under way", "of", who, "most", most, "refused_so_far", n)
	}
}

// Handler admits requests within the bounds. It is outermost: nothing of a request's
// body is read but through it.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{gate: g, control: http.NewResponseController(w), conn: connOf(r.Context())}
		c.claims = c.conn.isProven() || hasCredentials(r)
		address := networkOf(r.RemoteAddr)
		if err := g.take(c, address); err != nil {
			g.refuse(address, g.bounds.UnknownCalls)
			if r.ProtoMajor == 1 {
				// What is left of the request is not read, also not when the server ends it.
				w.Header().Set("Connection", "close")
				_ = c.control.SetReadDeadline(time.Now())
			}
			write(w, r, err)
			return
		}
		defer g.leave(c)
		_ = c.control.SetWriteDeadline(time.Now().Add(g.bounds.UnknownAnswer))
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		if r.Body != nil && r.Body != http.NoBody {
			until := time.Now().Add(g.bounds.UnknownTime)
			r.Body = &body{ReadCloser: r.Body, call: c, until: until}
			// Also where the handler does not read: HTTP/1 reads what is left before it answers.
			_ = c.control.SetReadDeadline(until)
		}
		next.ServeHTTP(w, r)
	})
}

// hasCredentials reports whether a request brings a token, a session or a certificate.
// They may be false ones: who checks them does so before the request's body is read.
func hasCredentials(r *http.Request) bool {
	return r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" || r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

var errorWriter = connect.NewErrorWriter()

// write refuses a request in the protocol in which it was made.
func write(w http.ResponseWriter, r *http.Request, err error) {
	if errorWriter.IsSupported(r) {
		_ = errorWriter.Write(w, r, err) // a caller that is gone
		return
	}
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	http.Error(w, err.Error(), http.StatusTooManyRequests)
}
