package docker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"linktrial/internal/backoff"
)

// Containers join another's network; the engine has no way to name a network
// namespace. So where the agent is not a container itself, one container of its
// own holds the namespace for the drivers: it starts without a network, moves
// into the agent's namespace and sleeps, without a capability left. Only it has
// ever more rights than the manifests ask for, and no driver's code runs in it.

// networkContainer returns the container whose network the drivers join, and
// makes it where necessary. image is one that the engine has; nothing of it is run.
func (r *Runner) networkContainer(ctx context.Context, image string) (string, error) {
	r.mu.Lock()
	id := r.network
	r.mu.Unlock()
	if id != "" {
		return id, nil
	}
	if self := ownContainer(); self != "" {
		if _, err := r.engine.ContainerInspect(ctx, self, client.ContainerInspectOptions{}); err == nil {
			return r.setNetwork(self, false), nil
		}
	}
	id, err := r.startHolder(ctx, image)
	if err != nil {
		return "", fmt.Errorf("network for containers: %w", err)
	}
	return r.setNetwork(id, true), nil
}

func (r *Runner) setNetwork(id string, held bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.network, r.held = id, held
	return id
}

// Paths in the container that holds the network.
const (
	holderProgram   = "/linktrial-hold"
	holderNamespace = "/linktrial-netns"
)

// startHolder makes and starts the container that holds the network, and returns
// when it is in the agent's namespace.
func (r *Runner) startHolder(ctx context.Context, image string) (string, error) {
	if len(r.cfg.Holder) == 0 {
		return "", fmt.Errorf("the agent is not a container of this engine, and has no program to hold its network")
	}
	made, err := r.engine.ContainerCreate(ctx, r.holderOptions(image))
	if err != nil {
		return "", err
	}
	_, err = r.engine.ContainerStart(ctx, made.ID, client.ContainerStartOptions{})
	if err == nil {
		err = r.awaitHolder(ctx, made.ID)
	}
	if err != nil {
		_ = r.remove(context.WithoutCancel(ctx), made.ID)
		return "", err
	}
	return made.ID, nil
}

func (r *Runner) holderOptions(image string) client.ContainerCreateOptions {
	args := append([]string{holderProgram}, r.cfg.Holder[1:]...)
	processes := int64(32)
	return client.ContainerCreateOptions{
		Config: &container.Config{
			Image: image, Entrypoint: args, Cmd: []string{holderNamespace}, User: "0:0",
			Labels:      map[string]string{LabelAgent: r.cfg.Agent, LabelRole: "network"},
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: &container.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, CapAdd: []string{"SYS_ADMIN"}, ReadonlyRootfs: true,
			SecurityOpt: []string{"no-new-privileges"}, LogConfig: container.LogConfig{Type: "none"},
			Resources: container.Resources{Memory: 64 << 20, PidsLimit: &processes},
			Mounts: []mount.Mount{
				{Type: mount.TypeBind, Source: r.cfg.Holder[0], Target: holderProgram, ReadOnly: true},
				{Type: mount.TypeBind, Source: "/proc/" + strconv.Itoa(os.Getpid()) + "/ns/net", Target: holderNamespace, ReadOnly: true},
			},
		},
	}
}

// awaitHolder waits until the container is in the agent's network namespace, for
// ten seconds at most.
func (r *Runner) awaitHolder(ctx context.Context, id string) error {
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	for begin := time.Now(); ; {
		c, err := r.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if err != nil {
			return err
		}
		state := c.Container.State
		if !state.Running {
			return fmt.Errorf("its container ended with exit code %d %s", state.ExitCode, state.Error)
		}
		have, err := os.Readlink("/proc/" + strconv.Itoa(state.Pid) + "/ns/net")
		switch waited := time.Since(begin); {
		case err == nil && have == want:
			return nil
		// While the holder executes itself anew from its moved thread, its first
		// thread has ended and shows no namespace.
		case err != nil && waited > 2*time.Second:
			return fmt.Errorf("the engine does not run on this machine: %w", err)
		case waited > 10*time.Second:
			return fmt.Errorf("its container stayed in %s, expected %s", have, want)
		}
		if !backoff.Sleep(ctx, 5*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// Hold moves this process into the network namespace of a file, gives up every
// capability and sleeps until a signal ends it. It returns only with an error.
//
// The engine uses the namespace of the process's first thread, and a thread can
// move only itself. So the thread that has moved executes the program again,
// which makes it the first one; the second time the process is in the namespace.
func Hold(namespace string) error {
	here, err := sameFile("/proc/self/ns/net", namespace)
	if err != nil {
		return fmt.Errorf("hold a network: %w", err)
	}
	if here {
		return sleepWithoutCapabilities()
	}
	f, err := os.Open(namespace)
	if err != nil {
		return fmt.Errorf("hold a network: %w", err)
	}
	defer f.Close()
	runtime.LockOSThread()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("hold a network: move into %s: %w", namespace, err)
	}
	if os.Getenv(movedEnv) != "" {
		return fmt.Errorf("hold a network: the process was moved and is not in %s", namespace)
	}
	if err := unix.Exec("/proc/self/exe", os.Args, append(os.Environ(), movedEnv+"=1")); err != nil {
		return fmt.Errorf("hold a network: execute the program again: %w", err)
	}
	return nil // not reached
}

const movedEnv = "LINKTRIAL_HOLD_MOVED"

func sameFile(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	if err != nil {
		return false, err
	}
	return os.SameFile(x, y), nil
}

func sleepWithoutCapabilities() error {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	// Every thread gives up its capabilities.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0); errno != 0 {
		return fmt.Errorf("hold a network: give up capabilities: %w", errno)
	}
	<-end
	os.Exit(0)
	return nil // not reached
}

var containerForm = regexp.MustCompile(`/containers/([0-9a-f]{64})/(?:hostname|hosts|resolv\.conf)$`)

// ownContainer is the identity of the container that this process is in, ""
// where it is in none: an engine mounts files of its own over three of each
// container's.
func ownContainer() string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	return containerOf(f)
}

// containerOf finds the container in a list of mounts (proc_pid_mountinfo(5)).
func containerOf(mounts io.Reader) string {
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || !strings.HasPrefix(fields[4], "/etc/") {
			continue
		}
		if m := containerForm.FindStringSubmatch(fields[3]); m != nil {
			return m[1]
		}
	}
	return ""
}
