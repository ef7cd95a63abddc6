package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// machine is the root file system of a bare Debian: no PostgreSQL, no C++ runtime.
type machine struct {
	t    *testing.T
	root string
}

// newMachine unpacks one, which make test-bases has made.
func newMachine(t *testing.T, dir string) *machine {
	t.Helper()
	base, err := exec.Command("scripts/base-image", "--tar").CombinedOutput()
	require.NoError(t, err, "%s", base)
	m := &machine{t, filepath.Join(dir, "root")}
	require.NoError(t, os.Mkdir(m.root, 0o755))
	out, err := exec.Command("tar", "-C", m.root, "-xf", strings.TrimSpace(string(base))).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, device := range map[string]uint64{"null": unix.Mkdev(1, 3), "zero": unix.Mkdev(1, 5), "urandom": unix.Mkdev(1, 9)} {
		require.NoError(t, unix.Mknod(m.path("/dev/"+name), unix.S_IFCHR|0o666, int(device)))
		require.NoError(t, os.Chmod(m.path("/dev/"+name), 0o666))
	}
	require.NoError(t, os.MkdirAll(m.path("/dev/shm"), 0o755))
	require.NoError(t, os.Chmod(m.path("/dev/shm"), 0o777|os.ModeSticky))
	// The scripts of the package find a systemd that notes what it is told.
	require.NoError(t, os.MkdirAll(m.path("/run/systemd/system"), 0o755))
	require.NoError(t, os.WriteFile(m.path("/usr/bin/systemctl"), []byte("#!/bin/sh\necho \"$*\" >>"+systemctlLog+"\n"), 0o755))
	require.NoError(t, unix.Mount("proc", m.path("/proc"), "proc", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(m.path("/proc"), unix.MNT_DETACH)) })
	return m
}

const systemctlLog = "/tmp/systemctl"

// told returns what systemd was told since it was asked last.
func (m *machine) told() string {
	m.t.Helper()
	b, err := os.ReadFile(m.path(systemctlLog))
	require.NoError(m.t, err)
	require.NoError(m.t, os.Remove(m.path(systemctlLog)))
	return string(b)
}

func (m *machine) path(at string) string { return filepath.Join(m.root, at) }

// command is a program inside, which ends with this process.
func (m *machine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command("/usr/bin/env", append([]string{name}, args...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: m.root, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run returns what a program inside prints.
func (m *machine) run(name string, args ...string) string {
	m.t.Helper()
	var out, failed bytes.Buffer
	cmd := m.command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &failed
	require.NoError(m.t, cmd.Run(), "%s %q: %s%s", name, args, &out, &failed)
	return out.String()
}

// state lists what a machine has: its files, folders and users, but what dpkg and passwd
// keep for themselves, and where this test puts the package.
func (m *machine) state() map[string]string {
	m.t.Helper()
	all := map[string]string{}
	own := regexp.MustCompile(`^/(proc|dev|tmp|media|root)(/|$)|^/var/(lib/dpkg|log|cache)(/|$)|^/etc/(passwd|group|shadow|gshadow|subuid|subgid)-$|^/etc/\.pwd\.lock$`)
	require.NoError(m.t, filepath.WalkDir(m.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := strings.TrimPrefix(path, m.root)
		if own.MatchString(at) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		all[at] = ""
		switch at {
		case "/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow":
			b, err := os.ReadFile(path)
			all[at] = string(b)
			return err
		}
		return nil
	}))
	return all
}

// serve starts an orchestrator inside, waits for its pages, and ends it. It returns how long
// the pages took, and which program the database was.
func (m *machine) serve(credential *syscall.Credential, program string, args ...string) (pages time.Duration, database string) {
	t := m.t
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	cmd := m.command(program, append([]string{"serve", "--listen", address}, args...)...)
	cmd.SysProcAttr.Credential = credential
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	began := time.Now()
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.After(30 * time.Second)
	for healthy := false; !healthy; {
		select {
		case err := <-ended:
			t.Fatalf("linktrial serve ended: %v\n%s", err, &log)
		case <-deadline:
			cmd.Process.Kill()
			<-ended
			t.Fatalf("no pages within 30 s\n%s", &log)
		case <-time.After(20 * time.Millisecond):
			healthy = answers(address, "/healthz") != ""
		}
	}
	page := answers(address, "/")
	pages = time.Since(began)
	require.Contains(t, page, "<!doctype html>")
	database = databaseOf(t, cmd.Process.Pid)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-ended, "%s", &log)
	return pages, database
}

// answers returns the body of an answer; empty: there is none yet.
func answers(address, path string) string {
	res, err := http.Get("http://" + address + path)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// databaseOf returns the program of the child of an orchestrator.
func databaseOf(t *testing.T, pid int) string {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	require.NoError(t, err)
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	for _, task := range tasks { // any thread may have started it
		more, err := os.ReadFile(task)
		require.NoError(t, err)
		children = append(children, more...)
	}
	for _, child := range strings.Fields(string(children)) {
		if exe, err := os.Readlink("/proc/" + child + "/exe"); err == nil && filepath.Base(exe) == "postgres" {
			return exe
		}
	}
	t.Fatalf("process %d has no database among its children: %s", pid, children)
	return ""
}

func (m *machine) credential(user string) *syscall.Credential {
	m.t.Helper()
	var uid, gid uint32
	_, err := fmt.Sscanf(strings.Split(m.run("getent", "passwd", user), ":x:")[1], "%d:%d:", &uid, &gid)
	require.NoError(m.t, err)
	return &syscall.Credential{Uid: uid, Gid: gid}
}
