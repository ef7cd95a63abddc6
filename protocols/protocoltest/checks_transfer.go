package protocoltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"linktrial/protocols/contract"
)

func rate(r *contract.Result) string {
	return fmt.Sprintf("connected in %s, %.2f KB/s", time.Duration(r.ConnectNS).Round(time.Microsecond), float64(r.SizeBytes)/1024/(float64(r.ElapsedNS)/1e9))
}

// drawSize draws the size of a payload about another one, so that no size says that it is
// the suite's.
func drawSize(about int64) int64 { return about*7/10 + rand.Int64N(about/2+1) }

// little draws the size of a payload of about 1 KiB, which one packet carries.
func little() int64 { return drawSize(kib) }

// checkSize is a transfer of so many bytes; where there are more than one, of about so many.
func checkSize(about int64) func(context.Context, *suite) (string, error) {
	return func(ctx context.Context, s *suite) (string, error) {
		size := about
		if size > 1 {
			size = drawSize(about)
		}
		sp := s.serverParams()
		srv, err := s.serve(ctx, sp)
		if err != nil {
			return "", err
		}
		r, err := s.transfer(ctx, srv, sp.Local.Port, size)
		if err != nil {
			return "", err
		}
		return rate(r), nil
	}
}

// large draws the size of a large payload.
func (s *suite) large() int64 { return drawSize(s.aboutLarge()) }

func (s *suite) aboutLarge() int64 {
	if s.o.Quick {
		return 16 * mib
	}
	return 64 * mib
}

func checkLarge(ctx context.Context, s *suite) (string, error) {
	return checkSize(s.aboutLarge())(ctx, s)
}

// fewSamples is how many intervals a transfer must have lasted before it is an
// error that no sample came: a busy machine may miss some.
const fewSamples = 10

func checkSamples(ctx context.Context, s *suite) (string, error) {
	const intervalMS = 2
	sp := s.serverParams()
	sp.SampleIntervalMS = intervalMS
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	for size := s.large() / 4; ; size *= 4 {
		p := s.clientParams(sp.Local.Port, size)
		p.SampleIntervalMS = intervalMS
		c, err := s.begin(p)
		if err != nil {
			return "", err
		}
		r, err := s.wellDone(ctx, srv, c, p)
		if err != nil {
			return "", err
		}
		if r.ElapsedNS < fewSamples*intervalMS*int64(time.Millisecond) && size < 1<<30 {
			continue // too fast to see anything
		}
		counts := [2]int{}
		for i, d := range []*proc{c, srv} {
			n, err := sampled(d, p.Transfer.ID, intervalMS*time.Millisecond)
			if err != nil {
				return "", err
			}
			counts[i] = n
		}
		return fmt.Sprintf("%d of the client and %d of the server in %s, every %d ms", counts[0], counts[1], time.Duration(r.ElapsedNS).Round(time.Millisecond), intervalMS), nil
	}
}

func checkHundred(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	n := 100
	if s.o.Quick {
		n = 20
	}
	begin := time.Now()
	var inside time.Duration
	for i := range n {
		r, err := s.transfer(ctx, srv, sp.Local.Port, little())
		if err != nil {
			return "", fmt.Errorf("transfer %d: %w", i+1, err)
		}
		inside += time.Duration(r.ElapsedNS)
	}
	all := time.Since(begin)
	return fmt.Sprintf("%d, %s each from start to exit, %s of it the transfer", n, (all / time.Duration(n)).Round(100*time.Microsecond), (inside / time.Duration(n)).Round(100*time.Microsecond)), nil
}

func checkConcurrent(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	// One that does not end: who serves one after another never comes to the others.
	lp := s.clientParams(sp.Local.Port, endless)
	long, err := s.begin(lp)
	if err != nil {
		return "", err
	}
	if _, err := srv.await(ctx, s.o.Patience, "connected event of the first transfer", about(contract.KindConnected, lp.Transfer.ID)); err != nil {
		return "", err
	}
	const n = 4
	ps, cs := [n]*contract.Parameters{}, [n]*proc{}
	for i := range n {
		ps[i] = s.clientParams(sp.Local.Port, drawSize(mib))
		if cs[i], err = s.begin(ps[i]); err != nil {
			return "", err
		}
	}
	for i := range n {
		if _, err := s.wellDone(ctx, srv, cs[i], ps[i]); err != nil {
			return "", fmt.Errorf("transfer %d of %d at once: %w", i+1, n, err)
		}
	}
	if long.find(kind(contract.KindError)) != nil {
		return "", fmt.Errorf("the transfer that ran beside them failed%s", long.lastError())
	}
	return fmt.Sprintf("%d beside one that does not end", n), nil
}
