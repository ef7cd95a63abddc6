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
	"time"

	"linktrial/protocols/contract"
)

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
		if err := p.streams(size)(); err != nil {
			return "", err
		}
		return fmt.Sprintf("%d bytes in both directions at once", size), ctx.Err()
	})
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

// streams begins to carry size random bytes and the end of the stream both ways at
// once, and returns what waits for them and compares.
func (p *pair) streams(size int) (compare func() error) {
	var up, down error
	var both sync.WaitGroup
	both.Go(func() { up = stream(p.client, p.server, size, 1) })
	both.Go(func() { down = stream(p.server, p.client, size, 2) })
	return func() error {
		both.Wait()
		if up != nil {
			up = fmt.Errorf("to the server: %w", up)
		}
		if down != nil {
			down = fmt.Errorf("to the client: %w", down)
		}
		return errors.Join(up, down)
	}
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
	p, err := w.carrying()
	if err != nil {
		return err
	}
	defer p.close()
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
	p, err := w.carrying()
	if err != nil {
		return err
	}
	defer p.close()
	restore, err := w.s.cutLink()
	if err != nil {
		return err
	}
	// A timer that has backed off, and what has to be sent again after it.
	if err := p.patient(3*w.s.o.Cut + time.Minute); err != nil {
		return errors.Join(err, restore())
	}
	arrived := p.streams(64 * kib)
	err = errors.Join(wait(ctx, w.s.o.Cut), restore())
	return errors.Join(err, arrived())
}
