package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"linktrial/protocols/contract"
)

func checkStopClient(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.clientParams(sp.Local.Port, endless)
	// No sample follows the connected events: they come although nothing fills a buffer.
	sp.SampleIntervalMS = int(time.Hour.Milliseconds())
	p.SampleIntervalMS = sp.SampleIntervalMS
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	c.terminate()
	if _, err := s.failure(ctx, c, s.o.waits.stop, contract.CodeAborted); err != nil {
		return "", err
	}
	took := time.Since(begin)
	if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
		return "", fmt.Errorf("the next transfer: %w", err)
	}
	return "after " + took.Round(time.Millisecond).String(), nil
}

func checkStopServer(ctx context.Context, s *suite) (string, error) {
	idle, err := s.serve(ctx, s.serverParams())
	if err != nil {
		return "", err
	}
	idle.terminate()
	if err := s.stopped(ctx, idle); err != nil {
		return "", fmt.Errorf("an idle server: %w", err)
	}
	sp := s.serverParams()
	p := s.clientParams(sp.Local.Port, endless)
	p.Limits.TransferMS = s.lossMS()
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	srv.terminate()
	if err := s.stopped(ctx, srv); err != nil {
		return "", fmt.Errorf("a server with a transfer: %w", err)
	}
	took := time.Since(begin)
	e := srv.find(about(contract.KindError, p.Transfer.ID))
	if e == nil {
		return "", errors.New("a server with a transfer: no error event for it")
	}
	if e.Code != contract.CodeAborted {
		return "", fmt.Errorf("a server with a transfer said %s (%s), expected aborted", e.Code, e.Message)
	}
	if _, err := s.failure(ctx, c, time.Duration(p.Limits.TransferMS)*time.Millisecond+s.o.Patience, lost...); err != nil {
		return "", fmt.Errorf("its client: %w", err)
	}
	return fmt.Sprintf("after %s with a transfer", took.Round(time.Millisecond)), nil
}

func (s *suite) stopped(ctx context.Context, srv *proc) error {
	if err := srv.wait(ctx, s.o.waits.stop); err != nil {
		return err
	}
	if srv.signal != 0 || srv.code != contract.ExitOK {
		return fmt.Errorf("ended with %s, expected exit code 0", srv.ending())
	}
	return nil
}

const (
	// idleShare is how much of a processor an idle server may take.
	idleShare = 0.05
	// idleWakes is how often all its threads together may wake up, a second. A
	// busy machine wakes nobody more often, so it fails no sound driver.
	idleWakes = 10
	// idleSettles is how long it has to become idle.
	idleSettles = 5 * time.Second
)

func checkIdleServer(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	if _, err := s.transfer(ctx, srv, sp.Local.Port, little()); err != nil {
		return "", err
	}
	return s.becomesIdle(ctx, srv, "server", "transfer")
}

// becomesIdle waits until a process is idle after its last transfer or connection:
// what that has left to tidy up may take a while.
func (s *suite) becomesIdle(ctx context.Context, srv *proc, role, last string) (string, error) {
	for begin := time.Now(); ; {
		share, wakes, err := s.idling(ctx, srv)
		if err != nil {
			return "", err
		}
		detail := fmt.Sprintf("%.1f %% of a processor, %.0f wake-ups a second", 100*share, wakes)
		if share <= idleShare && wakes <= idleWakes {
			return detail, nil
		}
		if time.Since(begin) >= idleSettles {
			return "", fmt.Errorf("an idle %s takes %s, in each second of the %s after its last %s; at most %.0f %% and %d wake-ups are expected", role, detail, idleSettles, last, 100*idleShare, int(idleWakes))
		}
	}
}

// idling measures a server for a second: its share of a processor, and how
// often its threads woke up a second.
func (s *suite) idling(ctx context.Context, srv *proc) (share, wakes float64, err error) {
	first, err := usageOf(srv)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	last, err := usageOf(srv)
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(begin)
	for tid, l := range last {
		f := first[tid]
		// A thread that spins on a busy machine runs little, but whenever it is
		// let; one that sleeps would not run more if it were alone.
		free := max(took-(l.waited-f.waited), 50*time.Millisecond)
		share += float64(l.ran-f.ran) / float64(free)
		wakes += float64(l.switches-f.switches) / took.Seconds()
	}
	return share, wakes, nil
}

// usageOf reads the threads of all processes of a server.
func usageOf(srv *proc) (map[string]use, error) {
	out := map[string]use{}
	for _, pid := range members(srv.process.PID) {
		one, err := usage(pid)
		if err != nil && pid == srv.process.PID {
			return nil, err
		}
		maps.Copy(out, one) // thread numbers are those of the whole machine
	}
	return out, nil
}

// use is what one thread has had of the processors so far.
type use struct {
	ran, waited time.Duration // waited: could have run
	switches    int64         // voluntary
}

// usage reads the threads of a process (proc(5); Documentation/scheduler/sched-stats.rst).
func usage(pid int) (map[string]use, error) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	dir, err := os.ReadDir(tasks)
	if err != nil {
		return nil, fmt.Errorf("the server's threads: %w", err)
	}
	out := map[string]use{}
	for _, t := range dir {
		var u use
		b, err := os.ReadFile(tasks + t.Name() + "/schedstat")
		if errors.Is(err, os.ErrNotExist) {
			if _, err := os.Stat("/proc/self/schedstat"); err != nil {
				return nil, skip("this kernel does not count processor time by thread (no /proc/self/schedstat)")
			}
			continue // the thread has ended meanwhile
		}
		if err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(b), (*int64)(&u.ran), (*int64)(&u.waited)); err != nil {
			return nil, fmt.Errorf("the server's threads: schedstat %q: %w", b, err)
		}
		if b, err = os.ReadFile(tasks + t.Name() + "/status"); err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				u.switches, _ = strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			}
		}
		out[t.Name()] = u
	}
	return out, nil
}

// maxShown is how many breaches one message lists.
const maxShown = 3

func breaches(what string, list []string) error {
	if len(list) == 0 {
		return nil
	}
	more := ""
	if n := len(list) - maxShown; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
		list = list[:maxShown]
	}
	return fmt.Errorf("%s: %s%s", what, strings.Join(list, "; "), more)
}

func checkOutput(_ context.Context, s *suite) (string, error) {
	return "", breaches("in the checks before", s.output)
}

func checkExitCodes(_ context.Context, s *suite) (string, error) {
	return "", breaches("in the checks before", s.exits)
}

func checkChildren(_ context.Context, s *suite) (string, error) {
	return "", breaches("after the checks before", s.children)
}
