package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/agents/runner"
	"linktrial/internal/process"
	"linktrial/internal/process/processtest"
	"linktrial/protocols/contract"
)

func script(t *testing.T, dir, name, manifest, text string) {
	t.Helper()
	folder := filepath.Join(dir, name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if manifest == "" {
		manifest = "name: " + name + "\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 2\ncommand: [./run]\nnetwork: tcp\n"
	}
	os.WriteFile(filepath.Join(folder, "driver.yaml"), []byte(manifest), 0o644)
	if text != "" {
		processtest.WriteExecutable(t, filepath.Join(folder, "run"), []byte("#!/bin/sh\n"+text))
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "plain"), os.DirFS(filepath.Join(drivers, "plain"))); err != nil {
		t.Fatal(err)
	}
	os.Chmod(filepath.Join(dir, "plain", "plain"), 0o755)
	script(t, dir, "broken", "name: broken\n", "")
	script(t, dir, "other", "name: another\ntitle: T\nsummary: s\nversion: \"1\"\ncontract: 2\ncommand: [./run]\nnetwork: tcp\n", "")
	script(t, dir, "gone", "", "")
	script(t, dir, "mute", "", "echo a word to the log >&2; exit 5")
	script(t, dir, "unable", "", `echo '{"event":"error","code":"unsupported","message":"no such kernel module"}'; exit 127`)
	script(t, dir, "talker", "", "yes nonsense")
	script(t, dir, "liar", "", `echo '{"event":"ready","info":{"implementation":"x"}}'; exit 3`)
	os.MkdirAll(filepath.Join(dir, "no-driver"), 0o755)
	states, err := runner.List(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ name, why string }{
		{"broken", "title"}, {"gone", "no such file"}, {"liar", "exit code 3"}, {"mute", "a word to the log"}, {"other", `"another"`},
		{"plain", ""}, {"talker", "nonsense"}, {"unable", "no such kernel module"},
	}
	if len(states) != len(want) {
		t.Fatalf("%d drivers, expected %d: %+v", len(states), len(want), states)
	}
	for i, w := range want {
		s := states[i]
		if s.Driver.Name != w.name || s.Runs() != (w.why == "") || !strings.Contains(s.Driver.Unsupported, w.why) {
			t.Errorf("driver %+v, expected %s with %q", s.Driver, w.name, w.why)
		}
		if s.Runs() && (len(s.Driver.SHA256) != 64 || s.Driver.Implementation != "test over tcp") {
			t.Errorf("driver %+v", s.Driver)
		}
	}
	if _, err := runner.List(context.Background(), filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that is not there was listed")
	}
}

// What a driver started ends with it, also when it holds the output open.
func TestProcessGroupEndsWithDriver(t *testing.T) {
	dir, pids := t.TempDir(), t.TempDir()
	mark := filepath.Join(dir, "pid")
	script(t, dir, "parent", "", "cat >/dev/null\nsleep 600 &\necho $! >"+mark+"\nexit 0")
	r := runner.New(runner.Config{Dir: dir, PIDDir: pids})
	p, err := r.Start(context.Background(), "parent", &contract.Parameters{Role: contract.RoleClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the driver does not end")
	}
	p.Output().Close()
	b, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := process.Identify(pid); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("what the driver started still runs")
		}
	}
	if left, _ := filepath.Glob(filepath.Join(pids, "*")); len(left) > 0 {
		t.Errorf("notes left: %v", left)
	}
}

func TestSweep(t *testing.T) {
	pids := t.TempDir()
	start := func() (*exec.Cmd, process.Identity) {
		cmd := exec.Command("sleep", "600")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		id, err := process.Identify(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return cmd, id
	}
	note := func(id process.Identity) {
		b, _ := json.Marshal(map[string]any{"pid": id.PID, "start_ticks": id.StartTicks, "command": []string{"sleep"}})
		if err := os.WriteFile(filepath.Join(pids, strconv.Itoa(id.PID)+".json"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	leftover, id := start()
	note(id)
	stranger, sid := start()
	defer func() {
		stranger.Process.Kill()
		stranger.Wait()
	}()
	note(process.Identity{PID: sid.PID, StartTicks: sid.StartTicks - 1}) // the number now belongs to another process
	os.WriteFile(filepath.Join(pids, "torn.json"), []byte(`{"pid": 1`), 0o644)
	// The leftover is this test's own child, so it must be waited for to go.
	waited := make(chan error, 1)
	go func() { waited <- leftover.Wait() }()
	if err := runner.New(runner.Config{PIDDir: pids}).Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err == nil {
		t.Error("the leftover ended by itself")
	}
	if !sid.Alive() {
		t.Error("a process that was not noted was ended")
	}
	if left, _ := filepath.Glob(filepath.Join(pids, "*")); len(left) > 0 {
		t.Errorf("notes left: %v", left)
	}
}

func TestLargeLogKeepsItsEnd(t *testing.T) {
	dir := t.TempDir()
	script(t, dir, "chatty", "", "head -c 300000 /dev/zero | tr '\\0' x >&2; echo the end >&2")
	p, err := runner.New(runner.Config{Dir: dir}).Start(context.Background(), "chatty", &contract.Parameters{Role: contract.RoleClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	p.Output().Close()
	if log := p.Log(); len(log) != 64<<10 || !bytes.HasSuffix([]byte(log), []byte("the end\n")) {
		t.Errorf("log of %d bytes, ends with %q", len(log), log[max(0, len(log)-20):])
	}
}
