package uml

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
)

// saboteurManifest names every capability that a driver could hope for.
const saboteurManifest = `name: saboteur
title: Saboteur
summary: tries what no driver may do
version: "1.0.0"
contract: 2
command: [./saboteur]
network: tcp
capabilities: [CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_TIME, CAP_SYS_BOOT, CAP_SYS_CHROOT, CAP_SYS_RAWIO, CAP_MKNOD, CAP_DAC_OVERRIDE, CAP_SETUID, CAP_KILL, CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_PERFMON]
options:
  run: {type: string, default: "", help: the run's name}
`

// sabotage runs a driver that tries all it can, on both ends of a transfer in a guest, and
// returns what the client and the server of it could do. The folder of drivers has the
// given mode.
func sabotage(t *testing.T, b *bench, mode os.FileMode) (client, server []string, level string) {
	t.Helper()
	drivers := t.TempDir()
	if err := os.Chmod(drivers, mode); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(drivers, "saboteur")
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(folder, "saboteur"), "./testdata/saboteur")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(folder, "driver.yaml"), []byte(saboteurManifest), 0o644); err != nil {
		t.Fatal(err)
	}
	// An installed driver's modes, whatever the umask is.
	for path, mode := range map[string]os.FileMode{folder: 0o755, filepath.Join(folder, "saboteur"): 0o755, filepath.Join(folder, "driver.yaml"): 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	with := *b
	with.drivers = drivers
	const run = "sabotage"
	s := plan(t, run, line(1e6, 10*time.Millisecond, uniform(0)), 1024, 1, "tcp-cubic")
	sheet, err := runsheet.Decode(s.Document)
	if err != nil {
		t.Fatal(err)
	}
	sheet.Treatments[0].Protocol, sheet.Treatments[0].Options = "saboteur", map[string]any{"run": run}
	if s.Document, err = sheet.Encode(); err != nil {
		t.Fatal(err)
	}
	s = with.named(t, s)
	res, err := Run(t.Context(), RunConfig{
		Kernel: b.kernel, Dir: t.TempDir(), Sheets: []Sheet{s}, Executable: b.executable, Drivers: drivers, Trust: trusted, Seed: 7, Jobs: 1,
	})
	if err != nil || res.Sheets[0].Err != nil {
		t.Fatal(err, res.Sheets[0].Err)
	}
	ended := attempts(t, res.Sheets[0].Journals[radio.RoleClient])
	if len(ended) != 1 {
		t.Fatalf("%d attempts have ended", len(ended))
	}
	said := regexp.MustCompile(`client did: (.*);\nserver did: (.*);\nlevel of the client: (.*)`).FindStringSubmatch(ended[0].Log)
	if said == nil {
		t.Fatalf("the client did not say what it could do: %s", value(ended[0]))
	}
	return strings.Split(said[1], ", "), strings.Split(said[2], ", "), said[3]
}

// A driver in a guest writes nothing that results are made of, reaches no process but its
// own, and shares nothing with the other end but the radios. What the client has laid out
// it finds itself: the server does not.
func TestSaboteur(t *testing.T) {
	b := newBench(t)
	for name, tt := range map[string]struct {
		mode    os.FileMode
		user    string
		allowed []string
	}{
		"a user for each node": {0o755, "user 1990000001", nil},
		// Then drivers are of the agent's user (docs/security-drivers.md).
		"a folder that root alone enters": {0o700, "user 0", []string{"user", "signal", "environment", "files of a process", "size of the journal of client", "size of the journal of server"}},
	} {
		t.Run(name, func(t *testing.T) {
			client, server, level := sabotage(t, b, tt.mode)
			t.Logf("client: %q, server: %q", client, server)
			if level != tt.user {
				t.Errorf("the client runs as %s, expected %s", level, tt.user)
			}
			always := []string{"temporary", "usr"}
			allowed := append(slices.Clone(always), tt.allowed...)
			for _, did := range append(slices.Clone(server), client...) {
				if !slices.Contains(allowed, did) && !strings.HasPrefix(did, "found ") {
					t.Errorf("a driver could: %s", did)
				}
			}
			for _, did := range server {
				if strings.HasPrefix(did, "found ") || did == "size of the journal of client" {
					t.Errorf("the server could: %s", did)
				}
			}
			for _, did := range append(always, "found its file", "found its socket", "found its abstract socket", "found its command line", "found its lock of /usr/bin/env", "found its lock of /dev/null", "found a changed setting") {
				if !slices.Contains(client, did) {
					t.Errorf("the client itself could not: %s; the test tells nothing of it", did)
				}
			}
		})
	}
}

// A line of a journal that is changed while the guest runs fails the run, which has no
// journals then.
func TestChangedJournal(t *testing.T) {
	b := newBench(t)
	s := b.named(t, plan(t, "changed", line(16e3, 100*time.Millisecond, uniform(0)), 64<<10, 2, "tcp-cubic"))
	dir := t.TempDir()
	path := filepath.Join(dir, s.Run, string(radio.RoleServer), "runs", s.Run, "journal.jsonl")
	changed := false
	res, err := Run(t.Context(), RunConfig{
		Kernel: b.kernel, Dir: dir, Sheets: []Sheet{s}, Executable: b.executable, Drivers: b.drivers, Trust: trusted, Seed: 7, Jobs: 1,
		Progress: func(p Progress) {
			if changed || p.TrialsEnded == 0 {
				return
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
				return
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("1"), int64(bytes.IndexAny(text, "023456789"))); err != nil {
				t.Error(err)
			}
			changed = true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !changed {
		t.Fatal("the guest had ended before its journal could be changed")
	}
	if r := res.Sheets[0]; !errors.Is(r.Err, ErrChanged) || len(r.Journals) != 0 {
		t.Errorf("%v, journals of %v", r.Err, r.Journals)
	}
}
