package runner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/agents/runner"
	"linktrial/internal/confine"
	"linktrial/internal/process/processtest"
	"linktrial/protocols/contract"
)

const hostileManifest = "name: hostile\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 2\ncommand: [./hostile]\ncapabilities: [CAP_NET_ADMIN, CAP_BPF, CAP_SYS_PTRACE, CAP_DAC_OVERRIDE]\nnetwork: tcp\n"

// site is what a driver must not reach, and a folder with a hostile driver.
type site struct {
	drivers, state, logs string
	forbidden            []string
	socket               string // of the database
	agent                int    // a process of the agent's user
}

// publicDir is a folder that every user may enter, as testing's are not.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "linktrial-confined-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func hostile(t *testing.T) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the agent of an installation may start drivers as another user")
	}
	s := &site{drivers: publicDir(t), state: publicDir(t)}
	folder := filepath.Join(s.drivers, "hostile")
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "hostile"), "../testdata/hostile")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(folder, "driver.yaml"), []byte(hostileManifest), 0o644); err != nil {
		t.Fatal(err)
	}
	// An installed driver's, whatever the umask is.
	for path, mode := range map[string]os.FileMode{folder: 0o755, filepath.Join(folder, "hostile"): 0o755, filepath.Join(folder, "driver.yaml"): 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	// Modes as the programs write them, the journal's and a world-readable key too: the
	// rule does not depend on them.
	for name, mode := range map[string]os.FileMode{"identity.pem": 0o600, "authority.pem": 0o600, "trusted-keys": 0o644, "journal.jsonl": 0o644} {
		path := filepath.Join(s.state, name)
		if err := errors.Join(os.WriteFile(path, []byte("secret\n"), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		s.forbidden = append(s.forbidden, "read:"+path, "write:"+path)
	}
	s.logs = filepath.Join(s.state, "logs")
	sockets := filepath.Join(s.state, "socket")
	for _, dir := range []string{s.logs, sockets} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.socket = filepath.Join(sockets, "s")
	l, err := net.Listen("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	victim := exec.Command("sleep", "600")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	s.agent = victim.Process.Pid
	s.forbidden = append(s.forbidden, "list:"+s.state, "set:/proc/sys/net/ipv4/tcp_fin_timeout", "write:"+filepath.Join(folder, "driver.yaml"), "write:/etc/linktrial-hostile", "write:/tmp/linktrial-hostile",
		fmt.Sprintf("trace:%d", s.agent), fmt.Sprintf("read:/proc/%d/environ", s.agent),
		fmt.Sprintf("have:%d", unix.CAP_SYS_PTRACE), fmt.Sprintf("have:%d", unix.CAP_DAC_OVERRIDE), fmt.Sprintf("have:%d", unix.CAP_SETUID), fmt.Sprintf("have:%d", unix.CAP_NET_RAW), "privileges")
	return s
}

// run starts the driver and returns what came of each attempt.
func (s *site) run(t *testing.T, cfg runner.Config, tries ...string) (map[string]string, string) {
	t.Helper()
	cfg.Dir = s.drivers
	r := runner.New(cfg)
	p, err := r.Start(t.Context(), "hostile", &contract.Parameters{Contract: contract.Version, Role: contract.RoleQuery,
		Options: map[string]any{"try": tries}, LogFolder: s.logs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, _ := io.ReadAll(p.Output())
	<-p.Done()
	did := map[string]string{}
	if err := json.Unmarshal(out, &did); err != nil {
		t.Fatalf("%v: %s %s", err, out, p.Log())
	}
	return did, p.(interface{ Confinement() string }).Confinement()
}

// A hostile driver reads no key and no journal, connects to no database, traces and kills
// no agent; without the confinement it does all of it. The agent's umask changes none of it.
func TestHostileDriver(t *testing.T) {
	for _, mask := range []int{0o022, 0o077} {
		t.Run(fmt.Sprintf("umask %03o", mask), func(t *testing.T) {
			old := unix.Umask(mask)
			defer unix.Umask(old)
			testHostileDriver(t)
		})
	}
}

func testHostileDriver(t *testing.T) {
	s := hostile(t)
	connect, kill := "connect:"+s.socket, fmt.Sprintf("kill:%d", s.agent)
	log := strings.Repeat("0a", 16) + ".client.log"
	allowed := []string{"temporary", "read:/proc/self/status", "read:/sys/class/net/lo/mtu", "read:/etc/passwd", "log:" + log,
		fmt.Sprintf("have:%d", unix.CAP_NET_ADMIN), fmt.Sprintf("have:%d", unix.CAP_BPF)}
	t.Run("unconfined", func(t *testing.T) {
		for _, what := range append(s.forbidden, connect, kill) {
			if strings.HasPrefix(what, "write:") {
				continue // the files are needed
			}
			if did, level := s.run(t, runner.Config{}, what); did[what] != "done" || level != "" {
				t.Errorf("%s: %s, %q; expected it done: the test tells nothing", what, did[what], level)
			}
		}
	})
	t.Run("of a user of its own", func(t *testing.T) {
		did, level := s.run(t, runner.Config{Confined: true}, append(append(s.forbidden, connect, kill), allowed...)...)
		t.Log(level)
		for _, what := range append(s.forbidden, connect, kill) {
			if did[what] == "done" {
				t.Errorf("%s succeeded", what)
			}
		}
		s.allowed(t, did, allowed)
		if did["user"] == "0" {
			t.Error("it runs as root")
		}
		if b, err := os.ReadFile(filepath.Join(s.logs, log)); err != nil || string(b) != "of the driver\n" {
			t.Errorf("its log was not kept: %q, %v", b, err)
		}
		for {
			if _, err := os.Stat(did["temporary folder"]); os.IsNotExist(err) {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal("its temporary folder is still there")
			}
			time.Sleep(time.Millisecond)
		}
	})
	// Somebody's own driver in a folder that nobody else may enter.
	t.Run("of the agent's user", func(t *testing.T) {
		if confine.LandlockABI() == 0 {
			t.Skip("this kernel has no Landlock")
		}
		if err := os.Chmod(s.drivers, 0o700); err != nil {
			t.Fatal(err)
		}
		forbidden := s.forbidden
		if confine.LandlockABI() >= 6 {
			forbidden = append(forbidden, kill)
		}
		did, level := s.run(t, runner.Config{Confined: true}, append(forbidden, allowed...)...)
		t.Log(level)
		for _, what := range forbidden {
			if did[what] == "done" {
				t.Errorf("%s succeeded", what)
			}
		}
		s.allowed(t, did, allowed)
		if did["user"] != "0" || !strings.Contains(level, "others may not execute") {
			t.Errorf("user %s, %q", did["user"], level)
		}
	})
	t.Run("of its owner", func(t *testing.T) {
		const owner = 12345
		if err := os.Chmod(s.drivers, 0o755); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(s.drivers, "hostile")
		for _, f := range []string{folder, filepath.Join(folder, "hostile"), filepath.Join(folder, "driver.yaml")} {
			if err := os.Chown(f, owner, owner); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if did, level := s.run(t, runner.Config{Confined: true}, "privileges"); did["user"] != fmt.Sprint(owner) {
			t.Errorf("user %s, %q, expected %d", did["user"], level, owner)
		}
	})
}

func (s *site) allowed(t *testing.T, did map[string]string, allowed []string) {
	t.Helper()
	for _, what := range allowed {
		if did[what] != "done" {
			t.Errorf("%s: %s", what, did[what])
		}
	}
}

// An interpreter in somebody's folder takes a flag, and without it there is one clear error.
func TestConfinedInterpreter(t *testing.T) {
	s := hostile(t)
	if confine.LandlockABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	elsewhere := publicDir(t)
	processtest.WriteExecutable(t, filepath.Join(elsewhere, "sh"), []byte("#!/bin/sh\nexec /bin/sh \"$@\"\n"))
	script(t, s.drivers, "scripted", "name: scripted\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 2\ncommand: ["+filepath.Join(elsewhere, "sh")+", ./run]\nnetwork: tcp\n",
		`echo '{"event":"ready","info":{"implementation":"x"}}'`)
	state := runner.New(runner.Config{Dir: s.drivers, Confined: true}).Query(t.Context(), "scripted")
	if !state.Runs() || !strings.Contains(state.Driver.Detail["confinement"], "Landlock") {
		t.Errorf("%+v", state.Driver)
	}
	script(t, s.drivers, "linked", "name: linked\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 2\ncommand: [./link]\nnetwork: tcp\n", "")
	if err := os.WriteFile(filepath.Join(s.drivers, "linked", "link"), []byte("#!/usr/bin/env "+filepath.Join(elsewhere, "sh")+"\necho '{\"event\":\"ready\",\"info\":{\"implementation\":\"x\"}}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	state = runner.New(runner.Config{Dir: s.drivers, Confined: true}).Query(t.Context(), "linked")
	if state.Runs() || !strings.Contains(state.Driver.Unsupported, "ermission denied") {
		t.Errorf("%+v", state.Driver)
	}
	state = runner.New(runner.Config{Dir: s.drivers, Confined: true, DriverReads: []string{elsewhere}}).Query(t.Context(), "linked")
	if !state.Runs() {
		t.Errorf("%+v", state.Driver)
	}
}

// What the confinement costs the start of a driver until it has ended.
func BenchmarkStart(b *testing.B) {
	dir, err := os.MkdirTemp("/var/tmp", "linktrial-confined-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	folder := filepath.Join(dir, "plain")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	manifest := "name: plain\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 2\ncommand: [/bin/true]\nnetwork: tcp\n"
	if err := os.WriteFile(filepath.Join(folder, "driver.yaml"), []byte(manifest), 0o644); err != nil {
		b.Fatal(err)
	}
	for name, confined := range map[string]bool{"unconfined": false, "confined": true} {
		b.Run(name, func(b *testing.B) {
			r := runner.New(runner.Config{Dir: dir, Confined: confined})
			for b.Loop() {
				p, err := r.Start(b.Context(), "plain", &contract.Parameters{Contract: contract.Version, Role: contract.RoleQuery, Options: map[string]any{}}, nil)
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
				p.Output().Close()
			}
		})
	}
}
