// Package enginetest runs a container engine of a test's own: in a network
// namespace without a name and with folders of its own, so that it neither meets
// an engine of the machine nor changes the machine's packet filter. Comes in: a
// test. Goes out: the engine's address.
package enginetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// TB is the part of [testing.TB] that [Start] needs.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Engine is a running container engine.
type Engine struct {
	Host      string // for DOCKER_HOST
	Namespace string // file of the network namespace that it is in
	Client    *client.Client

	log string
}

// Reason is why no engine can be started on this machine; empty where one can.
func Reason() string {
	if os.Geteuid() != 0 {
		return "a container engine needs root"
	}
	for _, program := range []string{"dockerd", "iptables"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed (scripts/install-deps docker)"
		}
	}
	return ""
}

// Start starts an engine that ends, with all its containers, with the test. The
// test is skipped where none can be started.
func Start(t TB) *Engine {
	t.Helper()
	if why := Reason(); why != "" {
		t.Skipf("%s", why)
	}
	e, stop, err := Run(t.Context())
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return e
}

// Run is [Start] outside of a test: stop ends the engine and removes its folders.
func Run(ctx context.Context) (e *Engine, stop func() error, err error) {
	ns, err := newNamespace()
	if err != nil {
		return nil, nil, fmt.Errorf("network namespace for a container engine: %w", err)
	}
	// Short: the path of a Unix socket has at most 107 characters.
	dir, err := os.MkdirTemp("", "lte")
	if err != nil {
		ns.Close()
		return nil, nil, err
	}
	e = &Engine{
		Host:      "unix://" + filepath.Join(dir, "docker.sock"),
		Namespace: "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(int(ns.Fd())),
		log:       filepath.Join(dir, "log"),
	}
	// The configuration in /etc/docker belongs to the machine's own engine.
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o600); err != nil {
		ns.Close()
		return nil, nil, err
	}
	cmd := exec.Command("dockerd", "--data-root", filepath.Join(dir, "data"), "--exec-root", filepath.Join(dir, "exec"),
		"--pidfile", filepath.Join(dir, "pid"), "--host", e.Host, "--config-file", filepath.Join(dir, "config.json"),
		// Forwarding is set in the engine's namespace and nowhere else.
		"--ip-forward=true", "--userland-proxy=false")
	var ended chan struct{}
	stop = func() error {
		var wrong error
		if e.Client != nil {
			wrong = e.removeAll()
			_ = e.Client.Close() // it is not used any more
		}
		if ended != nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				_ = cmd.Process.Kill()
				<-ended
				wrong = fmt.Errorf("container engine did not end within 30 s: %s", e.tail())
			}
		}
		ns.Close()
		unmountBelow(dir)
		if err := os.RemoveAll(dir); err != nil && wrong == nil {
			wrong = fmt.Errorf("container engine's folder: %w", err)
		}
		return wrong
	}
	if ended, err = e.start(cmd); err == nil {
		err = e.wait(ctx, ended)
	}
	if err != nil {
		_ = stop() // the first error is returned
		return nil, nil, err
	}
	return e, stop, nil
}

func (e *Engine) start(cmd *exec.Cmd) (chan struct{}, error) {
	log, err := os.Create(e.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	// SIGTERM, not SIGKILL, when this process dies: the engine then ends its containers too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if err := process.InNamespace(e.Namespace, cmd.Start); err != nil {
		return nil, fmt.Errorf("container engine: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its log says why it ended
	}()
	return ended, nil
}

func (e *Engine) wait(ctx context.Context, ended <-chan struct{}) error {
	var err error
	if e.Client, err = client.New(client.WithHost(e.Host)); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; {
		if _, err = e.Client.Ping(ctx, client.PingOptions{}); err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("container engine did not start: %s", e.tail())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("container engine did not answer within 2 minutes (%w): %s", err, e.tail())
}

// removeAll removes the containers that a test left, and does not report them: a
// test that requires their removal checks it.
func (e *Engine) removeAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	list, err := e.Client.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return fmt.Errorf("container engine: %w", err)
	}
	for _, c := range list.Items {
		if _, err := e.Client.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
			return fmt.Errorf("container engine: %w", err)
		}
	}
	return nil
}

func (e *Engine) tail() string {
	b, err := os.ReadFile(e.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-3):], []byte("; ")))
}

// newNamespace makes one whose loopback is up.
func newNamespace() (*os.File, error) {
	f, err := namespace.Unnamed()
	if err != nil {
		return nil, err
	}
	if err := loopbackUp(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func loopbackUp(f *os.File) error {
	inside, err := netlink.NewHandleAt(netns.NsHandle(f.Fd()))
	if err != nil {
		return err
	}
	defer inside.Close()
	lo, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	return inside.LinkSetUp(lo)
}

// unmountBelow unmounts what a killed engine left mounted.
func unmountBelow(dir string) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return
	}
	lines := strings.Split(string(b), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if f := strings.Fields(lines[i]); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			_ = unix.Unmount(f[4], unix.MNT_DETACH) // the removal of the folder fails on what stays mounted
		}
	}
}
