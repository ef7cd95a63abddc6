package protocoltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"linktrial/protocols/contract"
)

// relayChecks are those of a driver that has the role relay. The suite is client
// and server over plain TCP; see chains.
var relayChecks = []check{
	{"relay-listen", "a relay is open when it says ready; one whose port is taken, or whose address the node does not have, says listen-failed", checkRelayListen, usual, []string{"Y1", "P11", "C4"}},
	{"relay-bytes", "bytes pass both ways unchanged, none are added, and the server's come before the client's; no connection is opened that nobody asked for", checkRelayBytes, usual, []string{"Y3", "Y4"}},
	{"relay-prompt", "a single byte goes on although none follows", checkRelayPrompt, usual, []string{"Y5"}},
	{"relay-concurrent", "several connections at once, none waits for another, not even for one that is full", checkRelayConcurrent, usual, []string{"Y2"}},
	{"relay-half-close", "the end of one direction goes on after its last byte, and the other direction goes on", checkRelayHalfClose, usual, []string{"Y6"}},
	{"relay-reset", "a reset goes on as a reset, from either end, while nothing moves, while a reader takes nothing, and after half of the connection has ended", checkRelayReset, usual, []string{"Y7"}},
	{"relay-refused", "where no server listens, or no route leads to it, the client is reset at once", checkRelayRefused, usual, []string{"Y8"}},
	{"relay-connect-limit", "a server that cannot be reached resets the client at limits.connect_ms; one that can be reached before is reached", checkRelayConnectLimit, usual, []string{"Y9"}},
	{"relay-back-pressure", "a reader that stops stops the sender, within 64 MiB; when it reads on, everything arrives", checkRelayBackPressure, usual, []string{"Y10"}},
	{"relay-idle-limit", "a connection without a byte for limits.transfer_ms is reset at both sides, no sooner, and within twice this time", checkRelayIdleLimit, usual, []string{"Y11"}},
	{"relay-outage", "a link cut for 30 s (quick: 2 s) on either side of a relay ends no connection, and what was written arrives after it", checkRelayOutage, usual, []string{"Y11", "Y6"}},
	{"relay-leaves-nothing", "100 connections (quick: 20) one after another, half of them reset, leave no socket in the relay", checkRelayLeavesNothing, usual, []string{"Y2", "Y12"}},
	{"relay-idle", "a relay without a connection takes no processor time, and wakes up at most 10 times a second", checkRelayIdle, usual, []string{"Y13"}},
	{"relay-stop", "SIGTERM: the relay resets its connections, closes its port and exits at once with exit code 0", checkRelayStop, usual, []string{"Y14", "R10"}},
	{"relay-killed", "SIGKILL: the connections of the relay are reset", checkRelayKilled, usual, []string{"Y15"}},
}

func checkRelayListen(ctx context.Context, s *suite) (string, error) {
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		p, err := w.connect()
		if err != nil {
			return "", fmt.Errorf("as soon as it says ready: %w", err)
		}
		defer p.close()
		if len(w.relays) > 1 {
			return "", nil
		}
		_, port, err := net.SplitHostPort(w.entry)
		if err != nil {
			return "", err
		}
		taken := s.relayParams(contract.RoleServer, contract.Endpoint{Address: serverAddress, Port: 9})
		if _, err := fmt.Sscan(port, &taken.Local.Port); err != nil {
			return "", err
		}
		absent := s.relayParams(contract.RoleServer, contract.Endpoint{Address: serverAddress, Port: 9})
		absent.Local.Address = nowhere
		for what, params := range map[string]*contract.Parameters{"a second relay on the same port": taken, "a relay whose local.address this node does not have": absent} {
			r, err := s.beginAt(contract.RoleServer, params)
			if err != nil {
				return "", err
			}
			if _, err := s.failure(ctx, r, s.o.waits.ready, contract.CodeListenFailed); err != nil {
				return "", fmt.Errorf("%s: %w", what, err)
			}
		}
		if err := pass(p.client, p.server, "on"); err != nil {
			return "", fmt.Errorf("the first relay, after the second failed: %w", err)
		}
		return "", nil
	})
}

// unasked is how long the suite waits for what must not come.
const unasked = 300 * time.Millisecond

func checkRelayBytes(ctx context.Context, s *suite) (string, error) {
	size := 8 * mib
	if s.o.Quick {
		size = mib
	}
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		if c, err := w.accept(unasked); err == nil {
			_ = c.Close()
			return "", errors.New("the relay opened a connection before it had accepted one")
		}
		p, err := w.connect()
		if err != nil {
			return "", err
		}
		defer p.close()
		if err := p.client.SetReadDeadline(time.Now().Add(unasked)); err != nil {
			return "", err
		}
		if n, err := p.client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return "", fmt.Errorf("the client read %d bytes (%s) before the server had written any", n, said(err))
		}
		if err := p.patient(s.o.Patience); err != nil {
			return "", err
		}
		if err := pass(p.server, p.client, string(rune(contract.ByteReady))); err != nil {
			return "", fmt.Errorf("the server's first byte, before the client's: %w", err)
		}
		if err := p.patient(transferMS * time.Millisecond); err != nil {
			return "", err
		}
		var up, down error
		var both sync.WaitGroup
		both.Go(func() { up = stream(p.client, p.server, size, 1) })
		both.Go(func() { down = stream(p.server, p.client, size, 2) })
		both.Wait()
		if err := errors.Join(up, down); err != nil {
			return "", err
		}
		return fmt.Sprintf("%d bytes in both directions at once", size), ctx.Err()
	})
}

// said is an error's text for a message about more than the error.
func said(err error) string {
	if err == nil {
		return "without an error"
	}
	return err.Error()
}

// stream carries random bytes and the end of the stream, and compares what arrives.
func stream(from, to *net.TCPConn, size int, seed uint64) error {
	sent := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(sent)
	var werr error
	var writing sync.WaitGroup
	writing.Go(func() {
		if _, werr = from.Write(sent); werr == nil {
			werr = from.CloseWrite()
		}
	})
	got, err := io.ReadAll(to)
	writing.Wait()
	switch {
	case errors.Join(werr, err) != nil:
		return fmt.Errorf("%d of %d bytes arrived: %w", len(got), size, errors.Join(werr, err))
	case len(got) != size:
		return fmt.Errorf("%d bytes arrived before the end of the stream, expected %d", len(got), size)
	case !bytes.Equal(got, sent):
		at := 0
		for got[at] == sent[at] {
			at++
		}
		return fmt.Errorf("byte %d of %d is another than was sent", at, size)
	}
	return nil
}

func checkRelayPrompt(ctx context.Context, s *suite) (string, error) {
	const rounds = 20
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		p, err := w.connect()
		if err != nil {
			return "", err
		}
		defer p.close()
		begin := time.Now()
		for range rounds {
			if err := pass(p.client, p.server, "?"); err != nil {
				return "", fmt.Errorf("a single byte from the client: %w", err)
			}
			if err := pass(p.server, p.client, "!"); err != nil {
				return "", fmt.Errorf("a single byte from the server: %w", err)
			}
		}
		return fmt.Sprintf("%d there and back in %s", rounds, time.Since(begin).Round(time.Millisecond)), nil
	})
}

func checkRelayConcurrent(ctx context.Context, s *suite) (string, error) {
	const many = 20
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		full, err := w.connect()
		if err != nil {
			return "", err
		}
		defer full.close()
		if _, err := fill(full.client, mostHeld); err != nil {
			return "", err
		}
		var pairs []*pair
		for i := range many {
			p, err := w.connect()
			if err != nil {
				return "", fmt.Errorf("connection %d, beside others that are open: %w", i+2, err)
			}
			defer p.close()
			pairs = append(pairs, p)
		}
		for i, p := range pairs {
			if err := errors.Join(pass(p.client, p.server, "there"), pass(p.server, p.client, "back")); err != nil {
				return "", fmt.Errorf("connection %d of %d: %w", i+2, many+1, err)
			}
		}
		return fmt.Sprintf("%d beside one that was full", many), nil
	})
}

func checkRelayHalfClose(ctx context.Context, s *suite) (string, error) {
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		for _, first := range []string{"client", "server"} {
			p, err := w.connect()
			if err != nil {
				return "", err
			}
			defer p.close()
			a, b := p.client, p.server
			if first == "server" {
				a, b = b, a
			}
			if err := halfClose(ctx, a, b); err != nil {
				return "", fmt.Errorf("the %s ends its direction first: %w", first, err)
			}
		}
		return "", nil
	})
}

// halfClose ends a's direction first, and then b's.
func halfClose(ctx context.Context, a, b *net.TCPConn) error {
	if _, err := a.Write([]byte("the last byte")); err != nil {
		return err
	}
	if err := a.CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(b)
	if err != nil || string(got) != "the last byte" {
		return fmt.Errorf("the other end read %q (%s), expected the bytes and then the end of the stream", got, said(err))
	}
	for range 3 {
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		if err := pass(b, a, "goes on"); err != nil {
			return fmt.Errorf("the other direction, after that: %w", err)
		}
	}
	if err := b.CloseWrite(); err != nil {
		return err
	}
	if rest, err := io.ReadAll(a); err != nil || len(rest) > 0 {
		return fmt.Errorf("the end of the other direction: read %q (%s)", rest, said(err))
	}
	return nil
}

func checkRelayReset(ctx context.Context, s *suite) (string, error) {
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		for _, by := range []string{"client", "server"} {
			for _, state := range []string{"nothing moves", "the server takes nothing", "the client takes nothing", "the client has ended its direction", "the server has ended its direction"} {
				if err := w.resets(ctx, by, state); err != nil {
					return "", fmt.Errorf("the %s resets its connection while %s: the other end: %w", by, state, err)
				}
			}
		}
		return "", nil
	})
}

// resets brings a connection into a state and has one end reset it.
func (w *way) resets(ctx context.Context, by, state string) error {
	p, err := w.connect()
	if err != nil {
		return err
	}
	defer p.close()
	if err := pass(p.client, p.server, "here"); err != nil {
		return err
	}
	switch state {
	case "the server takes nothing":
		_, err = fill(p.client, mostHeld)
	case "the client takes nothing":
		_, err = fill(p.server, mostHeld)
	case "the client has ended its direction":
		err = ended(p.client, p.server)
	case "the server has ended its direction":
		err = ended(p.server, p.client)
	}
	if err != nil {
		return err
	}
	one, other := p.client, p.server
	if by == "server" {
		one, other = other, one
	}
	reset(one)
	if err := w.s.broken(ctx, other); err != nil {
		return err
	}
	if state == "the "+by+" has ended its direction" {
		return nil // the other end has read this already, and reads no more
	}
	if err := other.SetReadDeadline(time.Now().Add(w.s.o.Patience)); err != nil {
		return err
	}
	return readsReset(other)
}

// ended ends a direction, to its reader.
func ended(from, to *net.TCPConn) error {
	if err := from.CloseWrite(); err != nil {
		return err
	}
	if got, err := io.ReadAll(to); err != nil || len(got) > 0 {
		return fmt.Errorf("read %q (%s), expected the end of the stream", got, said(err))
	}
	return nil
}

func checkRelayRefused(ctx context.Context, s *suite) (string, error) {
	address, _ := s.net.address(contract.RoleServer)
	remotes := map[string]contract.Endpoint{"no server listens": {Address: address, Port: s.port()}}
	if s.net.loopback == "" {
		remotes["no route leads to the server"] = contract.Endpoint{Address: nowhere, Port: 9}
	}
	var slowest time.Duration
	for what, remote := range remotes {
		_, err := s.eachWay(ctx, wayOf{remote: &remote}, func(w *way) (string, error) {
			begin := time.Now()
			c, err := w.dial()
			if errors.Is(err, syscall.ECONNRESET) {
				return "", nil // sooner than the client could see that it is connected
			}
			if err != nil {
				return "", err
			}
			defer func() { _ = c.Close() }()
			if err := c.SetDeadline(begin.Add(s.o.Patience)); err != nil {
				return "", err
			}
			err = readsReset(c)
			slowest = max(slowest, time.Since(begin))
			return "", err
		})
		if err != nil {
			return "", fmt.Errorf("%s: the client: %w", what, err)
		}
	}
	return fmt.Sprintf("after %s", slowest.Round(time.Millisecond)), nil
}

func checkRelayConnectLimit(ctx context.Context, s *suite) (string, error) {
	const limit = 1500 * time.Millisecond
	short := &contract.Limits{ConnectMS: limit.Milliseconds(), TransferMS: transferMS}
	detail, err := s.eachWay(ctx, wayOf{at: contract.RoleClient, limits: short}, func(w *way) (detail string, err error) {
		restore, err := s.cutLink()
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, restore()) }()
		begin := time.Now()
		c, err := w.dial()
		if err != nil {
			return "", err
		}
		defer func() { _ = c.Close() }()
		if err := c.SetDeadline(time.Now().Add(limit + s.o.Patience)); err != nil {
			return "", err
		}
		if err := readsReset(c); err != nil {
			return "", fmt.Errorf("the link is cut and limits.connect_ms over: %w", err)
		}
		took := time.Since(begin)
		if took < limit {
			return "", fmt.Errorf("the client was reset after %s, the limit is %s: the link might have come back", took, limit)
		}
		return fmt.Sprintf("reset after %s", took.Round(time.Millisecond)), nil
	})
	if err != nil {
		return "", err
	}
	// What begins while the link is down must use it once it is up.
	_, err = s.eachWay(ctx, wayOf{at: contract.RoleClient, limits: &contract.Limits{ConnectMS: 30_000, TransferMS: transferMS}}, func(w *way) (string, error) {
		restore, err := s.cutLink()
		if err != nil {
			return "", err
		}
		c, err := w.dial()
		if err == nil {
			defer func() { _ = c.Close() }()
			err = wait(ctx, unasked)
		}
		if err := errors.Join(err, restore()); err != nil {
			return "", err
		}
		srv, err := w.accept(30*time.Second + s.o.Patience)
		if err != nil {
			return "", fmt.Errorf("a connection begun in an outage: %w", err)
		}
		return "", srv.Close()
	})
	return detail, err
}

// mostHeld is more than a relay and the buffers of all sockets hold of a connection, in bytes.
const mostHeld = 64 * mib

func checkRelayBackPressure(ctx context.Context, s *suite) (string, error) {
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		var held []int
		for _, who := range []string{"client", "server"} {
			p, err := w.connect()
			if err != nil {
				return "", err
			}
			defer p.close()
			from, to := p.client, p.server
			if who == "server" {
				from, to = to, from
			}
			n, err := fill(from, mostHeld)
			if err != nil {
				return "", err
			}
			if n >= mostHeld {
				return "", fmt.Errorf("the %s could write %d bytes that nobody read", who, n)
			}
			if err := p.patient(transferMS * time.Millisecond); err != nil {
				return "", err
			}
			if err := from.CloseWrite(); err != nil {
				return "", err
			}
			got, err := io.Copy(io.Discard, struct{ io.Reader }{to})
			if err != nil || got != int64(n) {
				return "", fmt.Errorf("of %d bytes that the %s wrote, %d arrived when the other end read on (%s)", n, who, got, said(err))
			}
			held = append(held, n/kib)
		}
		return fmt.Sprintf("%d KiB from the client, %d KiB from the server", held[0], held[1]), ctx.Err()
	})
}

func checkRelayIdleLimit(ctx context.Context, s *suite) (string, error) {
	const limit = 2 * time.Second
	limits := &contract.Limits{ConnectMS: connectMS, TransferMS: limit.Milliseconds()}
	return s.eachWay(ctx, wayOf{limits: limits}, func(w *way) (string, error) {
		for {
			took, late, err := w.idle(ctx, limit)
			switch {
			case late && ctx.Err() == nil: // this machine let the suite itself wait too long
				continue
			case err != nil:
				return "", err
			}
			return fmt.Sprintf("reset after %s", took.Round(time.Millisecond)), nil
		}
	})
}

// idle moves bytes for longer than twice the limit, and then none. late: a pause
// between two bytes was too long.
func (w *way) idle(ctx context.Context, limit time.Duration) (took time.Duration, late bool, err error) {
	p, err := w.connect()
	if err != nil {
		return 0, false, err
	}
	defer p.close()
	last := time.Now()
	for begin := last; time.Since(begin) < 2*limit+limit/4; {
		if err := wait(ctx, limit/5); err != nil {
			return 0, false, err
		}
		if err := p.patient(w.s.o.Patience); err != nil {
			return 0, false, err
		}
		err := pass(p.server, p.client, "alive")
		late, last = late || time.Since(last) > limit/2, time.Now()
		if err != nil {
			return 0, late, fmt.Errorf("a connection on which a byte moves every %s, with limits.transfer_ms of %s: %w", limit/5, limit, err)
		}
	}
	if err := p.patient(2*limit + w.s.o.Patience); err != nil {
		return 0, false, err
	}
	if err := readsReset(p.client); err != nil {
		return 0, false, fmt.Errorf("no byte moves for limits.transfer_ms of %s: the client: %w", limit, err)
	}
	if took = time.Since(last); took < limit*9/10 {
		return 0, false, fmt.Errorf("reset %s after the last byte, limits.transfer_ms is %s", took, limit)
	}
	if err := readsReset(p.server); err != nil {
		return 0, false, fmt.Errorf("no byte moves for limits.transfer_ms of %s: the server: %w", limit, err)
	}
	return took, false, nil
}

func checkRelayOutage(ctx context.Context, s *suite) (string, error) {
	for _, at := range []contract.Role{contract.RoleServer, contract.RoleClient} {
		_, err := s.eachWay(ctx, wayOf{at: at, limits: &contract.Limits{ConnectMS: connectMS, TransferMS: 3*s.o.Cut.Milliseconds() + 60_000}}, func(w *way) (string, error) {
			if at == contract.RoleClient && len(w.relays) > 1 {
				return "", nil // the same as at the server
			}
			return "", w.outage(ctx)
		})
		if err != nil {
			return "", fmt.Errorf("a relay at the %s: %w", at, err)
		}
	}
	return fmt.Sprintf("%s on either side", s.o.Cut), nil
}

// outage cuts the link while both ends write and end their directions.
func (w *way) outage(ctx context.Context) error {
	p, err := w.connect()
	if err != nil {
		return err
	}
	defer p.close()
	if err := pass(p.client, p.server, "here"); err != nil {
		return err
	}
	restore, err := w.s.cutLink()
	if err != nil {
		return err
	}
	// A timer that has backed off, and what has to be sent again after it.
	if err := errors.Join(p.patient(3*w.s.o.Cut+time.Minute), err); err != nil {
		return errors.Join(err, restore())
	}
	var up, down error
	var both sync.WaitGroup
	both.Go(func() { up = stream(p.client, p.server, 64*kib, 3) })
	both.Go(func() { down = stream(p.server, p.client, 64*kib, 4) })
	err = wait(ctx, w.s.o.Cut)
	err = errors.Join(err, restore())
	both.Wait()
	if down != nil {
		down = fmt.Errorf("to the client: %w", down)
	}
	if up != nil {
		up = fmt.Errorf("to the server: %w", up)
	}
	return errors.Join(err, up, down)
}

func checkRelayLeavesNothing(ctx context.Context, s *suite) (string, error) {
	n := 100
	if s.o.Quick {
		n = 20
	}
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		var before []int
		for _, r := range w.relays {
			before = append(before, sockets(r))
		}
		for i := range n {
			p, err := w.connect()
			if err == nil {
				err = pass(p.client, p.server, "here")
			}
			if err == nil && i%2 == 0 {
				err = errors.Join(ended(p.client, p.server), ended(p.server, p.client))
			}
			if err != nil {
				return "", fmt.Errorf("connection %d: %w", i+1, err)
			}
			if i%2 == 1 {
				reset(p.client)
			}
			p.close()
		}
		for i, r := range w.relays {
			left, err := s.settled(ctx, r, before[i])
			if err != nil {
				return "", err
			}
			if left > before[i] {
				return "", fmt.Errorf("relay %d has %d sockets after %d connections that have all ended, and had %d before", i+1, left, n, before[i])
			}
		}
		return fmt.Sprintf("%d connections", n), nil
	})
}

func checkRelayIdle(ctx context.Context, s *suite) (string, error) {
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		p, err := w.connect()
		if err != nil {
			return "", err
		}
		err = errors.Join(ended(p.client, p.server), ended(p.server, p.client))
		p.close()
		if err != nil {
			return "", err
		}
		detail := ""
		for _, r := range w.relays {
			if detail, err = s.becomesIdle(ctx, r, "relay", "connection"); err != nil {
				return "", err
			}
		}
		return detail, nil
	})
}

func checkRelayStop(ctx context.Context, s *suite) (string, error) {
	early, send, err := s.waiting(&contract.Parameters{Role: contract.RoleRelay})
	if err != nil {
		return "", err
	}
	early.early = true
	if err := s.asleep(ctx, early); err != nil {
		return "", err
	}
	early.terminate()
	err = early.wait(ctx, s.o.waits.stop)
	_ = send() // to nobody
	if err != nil {
		return "", fmt.Errorf("SIGTERM while the relay waits for its document: %w", err)
	}
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		p, err := w.connect()
		if err != nil {
			return "", err
		}
		defer p.close()
		if err := pass(p.client, p.server, "here"); err != nil {
			return "", err
		}
		begin := time.Now()
		w.relays[0].terminate()
		if err := s.stopped(ctx, w.relays[0]); err != nil {
			return "", fmt.Errorf("a relay with a connection: %w", err)
		}
		took := time.Since(begin)
		if err := p.patient(s.o.Patience); err != nil {
			return "", err
		}
		if err := readsReset(p.client); err != nil {
			return "", fmt.Errorf("SIGTERM: the client: %w", err)
		}
		if err := readsReset(p.server); err != nil {
			return "", fmt.Errorf("SIGTERM: the server: %w", err)
		}
		if c, err := w.dial(); err == nil {
			_ = c.Close()
			return "", errors.New("the port of a relay that was stopped is still open")
		}
		for _, r := range w.relays[1:] {
			r.terminate()
			if err := s.stopped(ctx, r); err != nil {
				return "", fmt.Errorf("a relay without a connection: %w", err)
			}
		}
		return fmt.Sprintf("after %s with a connection", took.Round(time.Millisecond)), nil
	})
}

func checkRelayKilled(ctx context.Context, s *suite) (string, error) {
	return s.eachWay(ctx, wayOf{}, func(w *way) (string, error) {
		p, err := w.connect()
		if err != nil {
			return "", err
		}
		defer p.close()
		if err := pass(p.client, p.server, "here"); err != nil {
			return "", err
		}
		w.relays[0].kill()
		if err := w.relays[0].wait(ctx, s.o.waits.stop); err != nil {
			return "", err
		}
		if err := p.patient(s.o.Patience); err != nil {
			return "", err
		}
		if err := readsReset(p.client); err != nil {
			return "", fmt.Errorf("SIGKILL: the client: %w", err)
		}
		// Behind another protocol nobody can say so any more.
		if len(w.relays) == 1 {
			if err := readsReset(p.server); err != nil {
				return "", fmt.Errorf("SIGKILL: the server: %w", err)
			}
		}
		return "", nil
	})
}
