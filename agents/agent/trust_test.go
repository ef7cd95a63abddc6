package agent

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"linktrial/agents/runner"
	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/protocols/contract"
)

var strangeKey = ed25519.NewKeyFromSeed([]byte("another key, of another machine!"))

// ownDrivers is a copy of the test driver that a test may change. Every start
// of it leaves a line in the file returned.
func ownDrivers(t *testing.T) (dir, starts string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "plain"), os.DirFS(filepath.Join(drivers, "plain"))); err != nil {
		t.Fatal(err)
	}
	starts = filepath.Join(t.TempDir(), "starts")
	manifest := filepath.Join(dir, "plain", "driver.yaml")
	b, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho start >> " + starts + "\nexec ./plain\n"
	if err := errors.Join(os.WriteFile(manifest, []byte(strings.Replace(string(b), "./plain", "./counted", 1)), 0o644),
		os.WriteFile(filepath.Join(dir, "plain", "counted"), []byte(script), 0o755), os.Chmod(filepath.Join(dir, "plain", "plain"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir, starts
}

func lineCount(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

func (o *orchestrator) end(node string) (e journal.RunEnded) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.stored[node] {
		if r.Type == journal.TypeRunEnded {
			json.Unmarshal(r.Body, &e)
		}
	}
	return e
}

// TestRefusals: whatever is wrong with sheet or driver, every node stops its
// part with one sentence, and no driver has been started for it.
func TestRefusals(t *testing.T) {
	ownID := signature.PublicOf(signingKey).ID()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, o *orchestrator, driversDir string)
		want  string
	}{
		"unsigned": {func(t *testing.T, o *orchestrator, _ string) {
			o.sign = func([]byte) signature.Signature { return signature.Signature{} }
		}, "not signed"},
		"changed on its way": {func(t *testing.T, o *orchestrator, _ string) {
			good := signed(o.sheet)
			o.sign = func([]byte) signature.Signature { return good }
			o.sheet = []byte(strings.Replace(string(o.sheet), `"attempts":1`, `"attempts":9`, 1))
		}, "was changed"},
		"another key": {func(t *testing.T, o *orchestrator, _ string) {
			o.sign = func(sheet []byte) signature.Signature { return signature.SignSheet(strangeKey, "run1", sheet) }
		}, "which this node does not trust (it trusts " + ownID + ")"},
		"another run's signature": {func(t *testing.T, o *orchestrator, _ string) {
			o.sign = func(sheet []byte) signature.Signature { return signature.SignSheet(signingKey, "run0", sheet) }
		}, "another run"},
		"signed nonsense": {func(t *testing.T, o *orchestrator, _ string) { o.sheet = []byte(`{"format":9}`) }, "format 9"},
		"a driver that is not named": {func(t *testing.T, o *orchestrator, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "plain", "more"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "linktrial protocol approve plain@sha256:"},
		"no digest at all": {func(t *testing.T, o *orchestrator, _ string) {
			o.sheet = withDigests(t, o.sheet, nil)
		}, "names no digest"},
		"a program in the protocol's place": {func(t *testing.T, o *orchestrator, _ string) {
			o.sheet = []byte(strings.Replace(string(o.sheet), `"protocol":"plain"`, `"protocol":"../plain"`, 1))
		}, `protocol "../plain"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir, starts := ownDrivers(t)
			o := newOrchestrator(t, withDigests(t, sheetOf(t, 1, runsheet.ControlOutOfBand, 0), []string{digestIn(t, dir)}))
			c.spoil(t, o, dir)
			nodes := []string{"client", "server"}
			for _, n := range nodes {
				cfg := config(t, radio.Role(n), o.server.URL)
				cfg.DriversDir, cfg.Drivers.Unconfined = dir, true // it counts its starts in a file
				runAgent(t, cfg)
				eventually(t, n+" is registered", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.nodes[n] != nil })
			}
			queries := lineCount(t, starts)
			o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, nodes...)
			for _, n := range nodes {
				eventually(t, "end of "+n, o.has(n, journal.TypeRunEnded, 1))
				e := o.end(n)
				if e.End != journal.RunStopped || !strings.Contains(e.Reason, c.want) || !strings.HasPrefix(e.Reason, "refused: ") || strings.Contains(e.Reason, "\n") {
					t.Errorf("%s: %s %q, expected a refusal in one line with %q", n, e.End, e.Reason, c.want)
				}
			}
			if n := lineCount(t, starts); n != queries {
				t.Errorf("drivers were started %d times", n-queries)
			}
		})
	}
}

func digestIn(t *testing.T, dir string) string {
	t.Helper()
	d, err := runner.New(runner.Config{Dir: dir}).Digest(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	return string(d)
}

func withDigests(t *testing.T, sheet []byte, digests []string) []byte {
	t.Helper()
	return changedSheet(t, sheet, func(s *runsheet.Sheet) { s.Treatments[0].Digests = digests })
}

func changedSheet(t *testing.T, sheet []byte, change func(*runsheet.Sheet)) []byte {
	t.Helper()
	s, err := runsheet.Decode(sheet)
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A driver that is replaced while an attempt is under way is not started any more; that
// attempt does not count, for what its shell or its modules read later is not known; and
// the run does not go on with trials that can only fail.
func TestDriverChangesDuringTheRun(t *testing.T) {
	dir, starts := ownDrivers(t)
	released := filepath.Join(t.TempDir(), "released")
	sheet := changedSheet(t, sheetOf(t, 3, runsheet.ControlOutOfBand, 0), func(s *runsheet.Sheet) {
		s.Treatments[0].Digests = []string{digestIn(t, dir)}
		s.Treatments[0].Options = map[string]any{"hold": released}
	})
	o := newOrchestrator(t, sheet)
	nodes := []string{"client", "server"}
	for _, n := range nodes {
		cfg := config(t, radio.Role(n), o.server.URL)
		cfg.DriversDir, cfg.Drivers.Unconfined = dir, true // it counts its starts in a file
		runAgent(t, cfg)
	}
	o.want(linktrialv1.Assignment_DESIRED_STATE_RUN, nodes...)
	eventually(t, "a transfer", o.has("client", journal.TypeConnected, 1))
	evil := filepath.Join(t.TempDir(), "evil") // as an upgrade does it
	if err := errors.Join(os.WriteFile(evil, []byte("#!/bin/sh\necho evil >> "+starts+"\nexec ./plain\n"), 0o755),
		os.Rename(evil, filepath.Join(dir, "plain", "counted")), os.WriteFile(released, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of the client", o.has("client", journal.TypeRunEnded, 1))
	if e := o.end("client"); e.End != journal.RunStopped || !strings.Contains(e.Reason, "which it was not when the run began") {
		t.Errorf("%s %q", e.End, e.Reason)
	}
	if b, err := os.ReadFile(starts); err != nil || strings.Contains(string(b), "evil") {
		t.Errorf("the other program was started (%v)", err)
	}
	var attempts []string
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.stored["client"] {
		if r.Type == journal.TypeAttemptEnded {
			var e journal.AttemptEnded
			if err := json.Unmarshal(r.Body, &e); err != nil {
				t.Fatal(err)
			}
			attempts = append(attempts, fmt.Sprintf("%d/%d %s %s", e.Trial, e.Attempt, e.Verdict, e.Reason))
		}
	}
	if len(attempts) == 0 || attempts[0] != "0/1 invalid driver-changed" || slices.ContainsFunc(attempts, func(a string) bool { return strings.Contains(a, "succeeded") }) {
		t.Errorf("attempts %q", attempts)
	}
}

// After a rotation the node trusts the new key because the old one endorses it,
// also when it is started again.
func TestRotatedKey(t *testing.T) {
	o := newOrchestrator(t, sheetOf(t, 1, runsheet.ControlOutOfBand, 0))
	next := signature.Endorse(signingKey, signature.PublicOf(strangeKey))
	o.keys = []*linktrialv1.SigningKey{shown(signature.Endorsed{Key: signature.PublicOf(signingKey)}), shown(next)}
	o.sign = func(sheet []byte) signature.Signature { return signature.SignSheet(strangeKey, "run1", sheet) }
	cfg := config(t, radio.RoleServer, o.server.URL)
	stop := runAgent(t, cfg)
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	stop()
	o.mu.Lock()
	o.keys = nil
	o.mu.Unlock()
	stop = runAgent(t, cfg)
	eventually(t, "listener again", o.has("server", journal.TypeListenerReady, 2))
	stop()
}

func shown(e signature.Endorsed) *linktrialv1.SigningKey {
	return &linktrialv1.SigningKey{PublicKey: e.Key[:], EndorsedBy: e.By, Endorsement: e.Endorsement}
}

// A node that pins follows the first orchestrator it meets and no other.
func TestPinnedKey(t *testing.T) {
	o := newOrchestrator(t, sheetOf(t, 1, runsheet.ControlOutOfBand, 0))
	o.keys = []*linktrialv1.SigningKey{shown(signature.Endorsed{Key: signature.PublicOf(signingKey)})}
	cfg := config(t, radio.RoleServer, o.server.URL)
	cfg.Trust = trust.Config{Pin: true}
	stop := runAgent(t, cfg)
	o.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "server")
	eventually(t, "listener", o.has("server", journal.TypeListenerReady, 1))
	stop()

	other := newOrchestrator(t, sheetOf(t, 1, runsheet.ControlOutOfBand, 0))
	other.keys = []*linktrialv1.SigningKey{shown(signature.Endorsed{Key: signature.PublicOf(strangeKey)})}
	other.sign = func(sheet []byte) signature.Signature { return signature.SignSheet(strangeKey, "run1", sheet) }
	if err := os.RemoveAll(filepath.Join(cfg.StateDir, "runs")); err != nil {
		t.Fatal(err)
	}
	cfg.Orchestrator = other.server.URL
	stop = runAgent(t, cfg)
	other.want(linktrialv1.Assignment_DESIRED_STATE_PREPARE, "server")
	eventually(t, "refusal", other.has("server", journal.TypeRunEnded, 1))
	if e := other.end("server"); !strings.Contains(e.Reason, "remove "+filepath.Join(cfg.StateDir, "pinned-key")) {
		t.Errorf("%q says not what to do", e.Reason)
	}
	stop()
}

func TestAgentWithoutAnyKey(t *testing.T) {
	cfg := config(t, radio.RoleServer, "http://127.0.0.1:1")
	cfg.Trust = trust.Config{}
	if err := Run(context.Background(), cfg); !errors.Is(err, trust.ErrNoKeys) {
		t.Errorf("it starts: %v", err)
	}
}

// TestSheetCannotNameAProgram: a protocol's name, which sheets, preflights and the
// leading node's assignments carry, reaches nothing but a folder of drivers.
func TestSheetCannotNameAProgram(t *testing.T) {
	r := runner.New(runner.Config{Dir: drivers})
	above := filepath.Base(drivers)
	for _, name := range []string{"", ".", "..", "/bin/sh", "sh", "true", "../" + above + "/plain", "plain/", "./plain", "plain/../plain", "plain/plain", "plain\x00", "Plain", "plain; sh", "$(sh)", "-c"} {
		if _, err := r.Start(t.Context(), name, &contract.Parameters{Contract: contract.Version, Role: contract.RoleQuery}, nil); !errors.Is(err, executor.ErrNoDriver) {
			t.Errorf("start of %q: %v", name, err)
		}
		if s := r.Query(t.Context(), name); s.Runs() {
			t.Errorf("query of %q runs", name)
		}
		if _, err := r.Digest(t.Context(), name); !errors.Is(err, executor.ErrNoDriver) {
			t.Errorf("digest of %q: %v", name, err)
		}
	}
	// Options, seeds and addresses are data: they reach the driver on its standard
	// input and never its command line, its environment or its folder.
	dir, told := ownDrivers(t)
	script := "#!/bin/sh\n{ echo arguments $# \"$@\"; pwd; env; } > " + told + "\nexec cat > /dev/null\n"
	if err := os.WriteFile(filepath.Join(dir, "plain", "counted"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := runner.New(runner.Config{Dir: dir}).Start(t.Context(), "plain", &contract.Parameters{Contract: contract.Version, Role: contract.RoleClient,
		Options: map[string]any{"command": "smuggled", "PATH": "smuggled", "LD_PRELOAD": "smuggled"}, Remote: contract.Endpoint{Address: "smuggled"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	b, err := os.ReadFile(told)
	if err != nil || !strings.HasPrefix(string(b), "arguments 0\n"+filepath.Join(dir, "plain")+"\n") || strings.Contains(string(b), "smuggled") {
		t.Errorf("the driver was started with %q (%v)", b, err)
	}
}

// What is no signature is refused by its kind, without waiting for a writer.
func TestSignatureIsARegularFile(t *testing.T) {
	sheet := filepath.Join(t.TempDir(), "sheet.json")
	if s, err := readSignature(sheet); err != nil || !s.IsZero() {
		t.Errorf("without a file: %v, %v", s, err)
	}
	if err := syscall.Mkfifo(SignaturePath(sheet), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readSignature(sheet); err == nil || !strings.Contains(err.Error(), "sheet.json.sig is a named pipe, expected a regular file") {
		t.Errorf("a named pipe: %v", err)
	}
}
