package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"net"
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
		taken := s.relayParams(contract.RoleServer, contract.Endpoint{Address: s.net.at.server, Port: 9})
		if _, err := fmt.Sscan(port, &taken.Local.Port); err != nil {
			return "", err
		}
		absent := s.relayParams(contract.RoleServer, contract.Endpoint{Address: s.net.at.server, Port: 9})
		absent.Local.Address = s.net.at.nowhere
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

// said is an error's text for a message about more than the error.
func said(err error) string {
	if err == nil {
		return "without an error"
	}
	return err.Error()
}

func checkRelayRefused(ctx context.Context, s *suite) (string, error) {
	address, _ := s.net.address(contract.RoleServer)
	remotes := map[string]contract.Endpoint{"no server listens": {Address: address, Port: s.port()}}
	if s.net.loopback == "" {
		remotes["no route leads to the server"] = contract.Endpoint{Address: s.net.at.nowhere, Port: 9}
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
