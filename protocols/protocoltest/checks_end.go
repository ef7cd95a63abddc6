package protocoltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"linktrial/protocols/contract"
)

func checkStopClient(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	p := s.clientParams(sp.Local.Port, endless)
	srv, c, err := s.running(ctx, sp, p)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	c.terminate()
	if _, err := s.failure(ctx, c, s.o.Patience, contract.CodeAborted); err != nil {
		return "", err
	}
	took := time.Since(begin)
	if _, err := s.transfer(ctx, srv, sp.Local.Port, kib); err != nil {
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
	if err := srv.wait(ctx, s.o.Patience); err != nil {
		return err
	}
	if srv.signal != 0 || srv.code != contract.ExitOK {
		return fmt.Errorf("ended with %s, expected exit code 0", srv.ending())
	}
	return nil
}

// idleShare is how much of a processor an idle server may take.
const idleShare = 0.05

func checkIdleServer(ctx context.Context, s *suite) (string, error) {
	sp := s.serverParams()
	srv, err := s.serve(ctx, sp)
	if err != nil {
		return "", err
	}
	if _, err := s.transfer(ctx, srv, sp.Local.Port, kib); err != nil {
		return "", err
	}
	first, err := usage(srv.cmd.Process.Pid)
	if err != nil {
		return "", err
	}
	begin := time.Now()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	last, err := usage(srv.cmd.Process.Pid)
	if err != nil {
		return "", err
	}
	took := time.Since(begin)
	share := float64(last.cpu-first.cpu) / float64(took)
	detail := fmt.Sprintf("%.1f %% of a processor, %.0f wake-ups a second", 100*share, float64(last.switches-first.switches)/took.Seconds())
	if share > idleShare {
		return "", fmt.Errorf("an idle server takes %s", detail)
	}
	return detail, nil
}

type use struct {
	cpu      time.Duration
	switches int64 // of all threads, voluntary
}

// usage adds up the threads of a process.
func usage(pid int) (use, error) {
	var u use
	tasks := "/proc/" + strconv.Itoa(pid) + "/task/"
	dir, err := os.ReadDir(tasks)
	if err != nil {
		return u, fmt.Errorf("the server's threads: %w", err)
	}
	for _, t := range dir {
		// Nanoseconds on a processor (Documentation/scheduler/sched-stats.rst).
		if b, err := os.ReadFile(tasks + t.Name() + "/schedstat"); err == nil {
			if f := strings.Fields(string(b)); len(f) > 0 {
				ns, _ := strconv.ParseInt(f[0], 10, 64)
				u.cpu += time.Duration(ns)
			}
		}
		b, err := os.ReadFile(tasks + t.Name() + "/status")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
				u.switches += n
			}
		}
	}
	return u, nil
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
