// Package timescaletest runs a PostgreSQL with TimescaleDB for a test, in a root
// file system of its own that scripts/base-image makes and keeps: the extension
// is in a newer Debian than the machine's. Comes in: a test. Goes out: a URL.
package timescaletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"linktrial/internal/checkout"
	"linktrial/internal/process"
)

// TB is the part of [testing.TB] that [Start] needs.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	TempDir() string
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

const bin = "/usr/lib/postgresql/17/bin/"

// Start starts a server that ends with the test and returns the URL of an empty
// database. It blocks until the server answers, at most a minute. Where no server
// can be made the test is skipped.
func Start(t TB) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf("a root file system of another Debian needs root")
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		t.Skipf("debootstrap is not installed (scripts/install-deps docker)")
	}
	c := cluster{root: t.TempDir()}
	if err := unpack(t.Context(), c.root); err != nil {
		t.Fatalf("%v", err)
	}
	if err := c.create(); err != nil {
		t.Fatalf("%v", err)
	}
	server := c.command("postgres", "-D", "/data", "-k", "/s", "-h", "", "-F",
		"-c", "shared_preload_libraries=timescaledb", "-c", "timescaledb.telemetry_level=off", "-c", "dynamic_shared_memory_type=mmap")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := process.Start(server); err != nil {
		t.Fatalf("postgres: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Wait() // its log says why it ended
	}()
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = server.Process.Kill()
			<-ended
			t.Errorf("postgres did not end within a minute")
		}
	})
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), c.url("postgres"))
		if err == nil {
			_, err = conn.Exec(t.Context(), "CREATE DATABASE linktrial")
			_ = conn.Close(t.Context())
			if err != nil {
				t.Fatalf("%v", err)
			}
			return c.url("linktrial")
		}
		select {
		case <-ended:
			t.Fatalf("postgres ended: %s", log.String())
		default:
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("postgres does not answer: %v", err)
		}
	}
}

// cluster is PostgreSQL's programs and data in a root file system, and the
// account that they run as.
type cluster struct {
	root     string
	uid, gid uint32
}

// create makes the folders of the data and the socket, and the data.
func (c *cluster) create() error {
	var err error
	if c.uid, c.gid, err = account(c.root, "postgres"); err != nil {
		return err
	}
	// A socket's path has at most 107 characters, so its folder has the shortest name.
	for _, dir := range []string{"/data", "/s"} {
		if err := os.Mkdir(filepath.Join(c.root, dir), 0o700); err != nil {
			return err
		}
		if err := os.Chown(filepath.Join(c.root, dir), int(c.uid), int(c.gid)); err != nil {
			return err
		}
	}
	if out, err := c.command("initdb", "-D", "/data", "-U", "test", "-A", "trust", "--locale=C.UTF-8", "-E", "UTF8", "--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

// command is one of PostgreSQL's programs, started inside the root file system.
func (c *cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(bin+name, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: c.uid, Gid: c.gid}}
	return cmd
}

func (c *cluster) url(database string) string {
	return "postgres://test@/" + database + "?host=" + filepath.Join(c.root, "s")
}

// unpack lays out the root file system, with the devices that a server reads.
func unpack(ctx context.Context, root string) error {
	source, err := checkout.Root()
	if err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	out, err := exec.CommandContext(ctx, filepath.Join(source, "scripts", "base-image"), "--tar", "postgresql-17", "postgresql-17-timescaledb").Output()
	if err != nil {
		text := err.Error()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			text = string(exit.Stderr)
		}
		return fmt.Errorf("root file system: %s", text)
	}
	// What a server does not need is not unpacked.
	if out, err := exec.CommandContext(ctx, "tar", "-C", root, "-xf", strings.TrimSpace(string(out)), "--exclude=./usr/share/perl*", "--exclude=./usr/lib/x86_64-linux-gnu/perl*", "--exclude=./var/lib").CombinedOutput(); err != nil {
		return fmt.Errorf("root file system: %w: %s", err, out)
	}
	for name, device := range map[string]uint64{"null": unix.Mkdev(1, 3), "zero": unix.Mkdev(1, 5), "urandom": unix.Mkdev(1, 9)} {
		path := filepath.Join(root, "dev", name)
		if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(device)); err != nil {
			return fmt.Errorf("device %s: %w", name, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return err
		}
	}
	return os.Chmod(root, 0o755)
}

// account reads a user of the root file system.
func account(root, name string) (uid, gid uint32, err error) {
	b, err := os.ReadFile(filepath.Join(root, "etc", "passwd"))
	if err != nil {
		return 0, 0, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		f := strings.Split(line, ":")
		if len(f) < 4 || f[0] != name {
			continue
		}
		u, err1 := strconv.ParseUint(f[2], 10, 32)
		g, err2 := strconv.ParseUint(f[3], 10, 32)
		if err1 != nil || err2 != nil {
			return 0, 0, fmt.Errorf("account %s: %q", name, line)
		}
		return uint32(u), uint32(g), nil
	}
	return 0, 0, fmt.Errorf("the root file system has no account %s", name)
}
