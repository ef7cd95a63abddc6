package protocoltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"linktrial/protocols/contract"
)

// checkLocalAddress: both ends of the link have two addresses, so that a driver
// that binds none of them, or all, can be told from one that binds the given one.
func checkLocalAddress(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	other, another := "127.0.0.2", "127.0.0.3"
	if s.net.link != nil {
		other, another = s.net.at.server2, s.net.at.client2
	}
	p := s.clientParams(sp.Local.Port, little())
	p.Remote.Address = other
	p.Limits.ConnectMS = 1000
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	if err := c.wait(ctx, s.within(p)); err != nil {
		return "", err
	}
	if c.find(kind(contract.KindConnected)) != nil {
		return "", fmt.Errorf("the server was to bind %s (local.address), but a client also reached it at %s", sp.Local.Address, other)
	}
	if _, err := s.failure(ctx, c, s.o.waits.exit, contract.CodeConnectRefused, contract.CodeConnectTimeout, contract.CodeUnreachable); err != nil {
		return "", fmt.Errorf("at %s, where no server listens: %w", other, err)
	}
	if s.net.link == nil {
		return "the server alone: the loopback interface does not show whose packets it carries", nil
	}
	// What the client before has sent last is not this one's.
	if err := s.net.link.Up.Drain(ctx); err != nil {
		return "", err
	}
	before := s.net.link.Up.Traffic().Sources
	p = s.clientParams(sp.Local.Port, little())
	p.Local.Address = another
	if c, err = s.begin(p); err != nil {
		return "", err
	}
	if _, err := s.wellDone(ctx, srv, c, p); err != nil {
		return "", fmt.Errorf("a client whose local.address is %s: %w", another, err)
	}
	if err := s.net.link.Up.Drain(ctx); err != nil {
		return "", err
	}
	want := netip.MustParseAddr(another)
	for a, n := range s.net.link.Up.Traffic().Sources {
		if n -= before[a]; a != want && n > 0 {
			return "", fmt.Errorf("the client was to bind %s (local.address), but %d of its packets came from %s", another, n, a)
		}
	}
	p = s.clientParams(sp.Local.Port, little())
	p.Local = contract.Endpoint{}
	if c, err = s.begin(p); err != nil {
		return "", err
	}
	if _, err := s.wellDone(ctx, srv, c, p); err != nil {
		return "", fmt.Errorf("a client without local.address, which is to use any: %w", err)
	}
	return fmt.Sprintf("the server at %s alone, the client from %s", sp.Local.Address, another), nil
}

// strange are fields that no version of the contract has.
var strange = map[string]any{"x_future": map[string]any{"deep": []any{1, "two", nil}}, "x_number": 1e300, "x_null": nil, "x_text": "später"}

// withStrange adds fields that no driver knows to a document and to the objects in it.
func withStrange(p *contract.Parameters) ([]byte, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		return nil, err
	}
	for _, object := range []string{"", "local", "remote", "transfer", "limits", "link"} {
		in := doc
		if object != "" {
			var there bool
			if in, there = doc[object].(map[string]any); !there {
				continue
			}
		}
		for k, v := range strange {
			in[k] = v
		}
	}
	// Numbers of 64 bits are in strings; what JSON made of the others is exact.
	return json.Marshal(doc)
}

func checkUnknownFields(ctx context.Context, s *suite) (string, error) {
	begin := func(p *contract.Parameters) (*proc, error) {
		p.Link = &contract.Link{RateBitsPerSecond: 1_000_000, ChannelRateBitsPerSecond: 1_100_000, RoundTripMS: 20, MTUBytes: 1500, LossShare: 0.01}
		doc, err := withStrange(p)
		if err != nil {
			return nil, err
		}
		return s.start(p.Role, doc)
	}
	const ignored = "with fields that the contract does not have (x_future and others, also within local, remote, transfer, limits and link), which a driver ignores"
	query, err := begin(s.params(contract.RoleQuery))
	if err != nil {
		return "", err
	}
	if _, err := query.await(ctx, s.o.waits.query, "ready event", kind(contract.KindReady)); err != nil {
		return "", fmt.Errorf("a query %s: %w", ignored, err)
	}
	sp := s.serverParams()
	srv, err := begin(sp)
	if err != nil {
		return "", err
	}
	if _, err := srv.await(ctx, s.o.waits.ready, "ready event", kind(contract.KindReady)); err != nil {
		return "", fmt.Errorf("a server %s: %w", ignored, err)
	}
	p := s.clientParams(sp.Local.Port, little())
	c, err := begin(p)
	if err != nil {
		return "", err
	}
	if _, err := s.wellDone(ctx, srv, c, p); err != nil {
		return "", fmt.Errorf("a client %s: %w", ignored, err)
	}
	return "", nil
}

// refusedLimit is the connect_ms of a client that must not wait for it.
const refusedLimit = 60 * time.Second

func checkRefused(ctx context.Context, s *suite) (string, error) {
	p := s.clientParams(s.port(), little())
	p.Limits.ConnectMS = refusedLimit.Milliseconds()
	codes := []contract.Code{contract.CodeConnectRefused}
	udp := s.target.Manifest.Network == "udp"
	if udp { // a socket that is not connected is not told
		p.Limits.ConnectMS = 2000
		codes = append(codes, contract.CodeConnectTimeout)
	}
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	limit := time.Duration(p.Limits.ConnectMS) * time.Millisecond
	wait := s.o.waits.ready
	if udp {
		wait += limit
	}
	code, err := s.failure(ctx, c, wait, codes...)
	if err != nil {
		return "", fmt.Errorf("no server listens there, and the network says so; limits.connect_ms is %d: %w", p.Limits.ConnectMS, err)
	}
	return fmt.Sprintf("%s after %s", code, time.Since(c.began).Round(time.Millisecond)), nil
}

func checkNoRoute(ctx context.Context, s *suite) (string, error) {
	if _, err := s.needLink(); err != nil {
		return "", err
	}
	p := s.clientParams(s.port(), little())
	p.Remote.Address = s.net.at.nowhere
	p.Device = "" // to a socket that is bound to an interface, everything is there
	p.Limits.ConnectMS = refusedLimit.Milliseconds()
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	if _, err := s.failure(ctx, c, s.o.waits.ready, contract.CodeUnreachable); err != nil {
		return "", fmt.Errorf("no route leads to %s; limits.connect_ms is %d: %w", s.net.at.nowhere, p.Limits.ConnectMS, err)
	}
	return fmt.Sprintf("unreachable after %s", time.Since(c.began).Round(time.Millisecond)), nil
}

// exitTries is how often a client must have been late to its end: a busy
// machine delays one, a driver that lingers is late each time.
const exitTries = 3

func checkPromptExit(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	for _, failing := range []bool{false, true} {
		for try := 1; ; try++ {
			took, err := s.exitOf(ctx, srv, sp.Local.Port, failing)
			if err == nil && took <= s.o.waits.exit {
				break
			}
			if err != nil {
				return "", err
			}
			if try == exitTries {
				last := "result"
				if failing {
					last = "error"
				}
				return "", fmt.Errorf("the client had not exited %s after its %s event, in %d transfers one after another; at most %s are expected, then Linktrial ends it", took.Round(time.Millisecond), last, exitTries, s.o.waits.exit)
			}
		}
	}
	return "", nil
}

// exitOf is how long a client lives after its last event: no more than a moment
// longer than a driver may.
func (s *suite) exitOf(ctx context.Context, srv *proc, port int, failing bool) (time.Duration, error) {
	last, size := contract.KindResult, little()
	if failing {
		last, size = contract.KindError, endless
	}
	p := s.clientParams(port, size)
	if failing {
		p.Limits.TransferMS = 200
	}
	c, err := s.begin(p)
	if err != nil {
		return 0, err
	}
	e, err := c.await(ctx, s.within(p), string(last)+" event", kind(last))
	if err != nil {
		return 0, err
	}
	if err := c.wait(ctx, s.o.waits.exit); err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		c.kill()
		<-c.ended
		return time.Since(e.at), nil
	}
	if !failing {
		if _, err := s.wellDone(ctx, srv, c, p); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// openTries is how many servers checkReadyOpen starts.
const openTries = 3

func checkReadyOpen(ctx context.Context, s *suite) (string, error) {
	table := ""
	for range openTries {
		sp := s.serverParams()
		srv, err := s.begin(sp)
		if err != nil {
			return "", err
		}
		p := s.clientParams(sp.Local.Port, little())
		c, send, err := s.waiting(p)
		if err != nil {
			return "", err
		}
		if _, err := srv.await(ctx, s.o.waits.ready, "ready event", kind(contract.KindReady)); err != nil {
			return "", errors.Join(err, send())
		}
		open := portOpen(srv, s.target.Manifest.Network, sp.Local.Port)
		ready := time.Now()
		if err := send(); err != nil {
			return "", err
		}
		if open {
			table = ", and the kernel showed the port open at that moment"
		} else if after, ok := s.opensLater(ctx, srv, sp.Local.Port, ready); ok {
			return "", fmt.Errorf("the server said ready, and opened its port %d about %s later; it says ready once the port is open", sp.Local.Port, after.Round(time.Millisecond))
		}
		if _, err := s.wellDone(ctx, srv, c, p); err != nil {
			return "", fmt.Errorf("a client that connects as soon as the server says ready: %w", err)
		}
	}
	return fmt.Sprintf("%d servers were connected to as they said ready%s", openTries, table), nil
}

// waiting starts a driver that gets its document when the returned function is called.
func (s *suite) waiting(params *contract.Parameters) (*proc, func() error, error) {
	doc, err := json.Marshal(params)
	if err != nil {
		return nil, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	p, err := s.startReading(params.Role, r)
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return p, func() error {
		_, err := io.Copy(w, s.input(params.Role, doc))
		return errors.Join(err, w.Close())
	}, nil
}

// portOpen reports whether the kernel of a server's network has a socket at the
// port: listening, for TCP. A protocol that the kernel does not know has none.
func portOpen(srv *proc, network string, port int) bool {
	const listening = "0A" // TCP_LISTEN (include/net/tcp_states.h)
	files := map[string][]string{"tcp": {"net/tcp", "net/tcp6"}, "udp": {"net/udp", "net/udp6"}}[network]
	want := fmt.Sprintf(":%04X", port)
	for _, name := range files {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(srv.process.PID) + "/" + name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line) // sl local_address rem_address st
			if len(f) > 3 && strings.HasSuffix(f[1], want) && (network != "tcp" || f[3] == listening) {
				return true
			}
		}
	}
	return false
}

// opensLater watches for a port that was not open at ready. None opens where
// the kernel has no part in the protocol: then the client's connection decides.
func (s *suite) opensLater(ctx context.Context, srv *proc, port int, ready time.Time) (time.Duration, bool) {
	for time.Since(ready) < time.Second && ctx.Err() == nil {
		if portOpen(srv, s.target.Manifest.Network, port) {
			return time.Since(ready), true
		}
		time.Sleep(time.Millisecond)
	}
	return 0, false
}

// checkStopEarly ends drivers before they have said ready: while they read
// their document.
func checkStopEarly(ctx context.Context, s *suite) (string, error) {
	for _, role := range []contract.Role{contract.RoleServer, contract.RoleClient} {
		p, send, err := s.waiting(&contract.Parameters{Role: role})
		if err != nil {
			return "", err
		}
		p.early = true
		// Not while a wrapper looks for the interpreter, whose helpers it would leave behind.
		if err := s.asleep(ctx, p); err != nil {
			return "", err
		}
		p.terminate()
		err = p.wait(ctx, s.o.waits.stop)
		_ = send() // to nobody
		if err != nil {
			return "", fmt.Errorf("SIGTERM while the %s waits for its document: %w", role, err)
		}
	}
	return "", nil
}

// asleep waits until a driver is one process that has taken no processor time
// for a while: it has started, and waits for its document. One that never is
// comes to the signal all the same.
func (s *suite) asleep(ctx context.Context, p *proc) error {
	const quiet, look = 300 * time.Millisecond, 20 * time.Millisecond
	last, since := "", time.Now()
	for begin := time.Now(); time.Since(begin) < s.o.waits.ready && time.Since(since) < quiet; {
		now := ""
		if all := members(p.process.PID); len(all) == 1 {
			b, _ := os.ReadFile("/proc/" + strconv.Itoa(all[0]) + "/stat")
			// utime and stime are fields 14 and 15 (proc(5)), the third is after the name.
			if f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])); len(f) > 12 {
				now = f[11] + " " + f[12]
			}
		}
		if now == "" || now != last {
			last, since = now, time.Now()
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// checkNoSuchAddress has both roles bind an address that the node does not have.
func checkNoSuchAddress(ctx context.Context, s *suite) (string, error) {
	p := s.serverParams()
	p.Local.Address = s.net.at.nowhere
	srv, err := s.begin(p)
	if err != nil {
		return "", err
	}
	if _, err := s.failure(ctx, srv, s.o.waits.ready, contract.CodeListenFailed); err != nil {
		return "", fmt.Errorf("a server whose local.address is %s, which this node does not have: %w", s.net.at.nowhere, err)
	}
	p = s.clientParams(s.port(), little())
	p.Local.Address = s.net.at.nowhere
	p.Limits.ConnectMS = refusedLimit.Milliseconds()
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	if _, err := s.failure(ctx, c, s.o.waits.ready, contract.CodeUnreachable); err != nil {
		return "", fmt.Errorf("a client whose local.address is %s, which this node does not have: %w", s.net.at.nowhere, err)
	}
	return "", nil
}

// checkIPv6 is a transfer between addresses of IPv6.
func checkIPv6(ctx context.Context, s *suite) (string, error) {
	here, there := "::1", "::1"
	if s.net.link != nil {
		here, there = s.net.at.client6, s.net.at.server6
	} else if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		return "", skip("this node has no IPv6: %v", err)
	} else if err := l.Close(); err != nil {
		return "", err
	}
	sp := s.serverParams()
	sp.Local.Address = there
	srv, err := s.begin(sp)
	if err != nil {
		return "", err
	}
	p := s.clientParams(sp.Local.Port, drawSize(64*kib))
	p.Local.Address, p.Remote.Address = here, there
	if _, err := srv.await(ctx, s.o.waits.ready, "ready event", kind(contract.KindReady)); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		// A protocol without IPv6: both roles say so.
		for _, role := range []*contract.Parameters{sp, p} {
			d, err := s.begin(role)
			if err != nil {
				return "", err
			}
			if _, err := s.failure(ctx, d, s.o.waits.ready, contract.CodeUnsupported); err != nil {
				return "", fmt.Errorf("an address of IPv6 (%s), which is to be used or refused with unsupported: %w", there, err)
			}
		}
		return "refused with unsupported", nil
	}
	c, err := s.begin(p)
	if err != nil {
		return "", err
	}
	r, err := s.wellDone(ctx, srv, c, p)
	if err != nil {
		return "", fmt.Errorf("from %s to %s: %w", here, there, err)
	}
	return rate(r), nil
}
