package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"linktrial/internal/payload"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
)

// programs builds this driver and TCP's, whose ends are the usual ones of what is
// split.
func programs(tb testing.TB) (split, tcp string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("network namespaces need root")
	}
	dir := tb.TempDir()
	for _, name := range []string{"split", "tcp"} {
		build := exec.CommandContext(tb.Context(), "go", "build", "-o", filepath.Join(dir, name), "../"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			tb.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return filepath.Join(dir, "split"), filepath.Join(dir, "tcp")
}

// started is a driver process in a namespace.
type started struct {
	tb     testing.TB
	cmd    *exec.Cmd
	events *contract.Output
}

func start(tb testing.TB, ns *os.File, program string, p *contract.Parameters) *started {
	tb.Helper()
	p.Contract = contract.Version
	p.Limits = contract.Limits{ConnectMS: 60_000, TransferMS: 600_000}
	p.SampleIntervalMS = 10_000
	doc, err := json.Marshal(p)
	if err != nil {
		tb.Fatal(err)
	}
	s := &started{tb: tb, cmd: exec.Command(program)}
	var source *payload.Source
	if p.Role == contract.RoleClient {
		source = payload.NewSource(payload.NewKey(nil, 1), p.Transfer.SizeBytes)
	}
	s.cmd.Stdin = payload.Input(doc, source)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	s.events = contract.NewOutput(out)
	if err := process.StartIn(s.cmd, fmt.Sprintf("/proc/self/fd/%d", ns.Fd())); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.stop)
	if p.Role != contract.RoleClient {
		s.await(contract.KindReady)
		go s.drain() // of a server, the payload
	}
	return s
}

func (s *started) drain() {
	for {
		if _, _, _, err := s.events.Next(); err != nil {
			return
		}
	}
}

func (s *started) stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
	}
}

// await reads events up to one of a kind.
func (s *started) await(k contract.Kind) *contract.Event {
	s.tb.Helper()
	for {
		e, _, _, err := s.events.Next()
		switch {
		case err != nil:
			s.tb.Fatalf("no %s event: %v", k, err)
		case e.Event == k:
			return e
		case e.Event == contract.KindError:
			s.tb.Fatalf("%s: %s", e.Code, e.Message)
		}
	}
}

// transfer carries one payload and returns its result.
func transfer(tb testing.TB, ns *os.File, program string, to contract.Endpoint, size int64, number int) *contract.Result {
	tb.Helper()
	c := start(tb, ns, program, &contract.Parameters{
		Role: contract.RoleClient, Remote: to,
		Transfer: contract.Transfer{ID: fmt.Sprintf("%032x", number+1), SizeBytes: size},
	})
	r := c.await(contract.KindResult).Result
	_ = c.cmd.Wait()
	return r
}

func seconds(r *contract.Result) time.Duration { return time.Duration(r.ElapsedNS) }
