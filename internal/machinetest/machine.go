package machinetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// Machine is one of a [Site].
type Machine struct {
	Name    string
	Address string   // control network
	Root    string   // mounted
	Changed string   // what differs from the base
	Netns   string   // name of its network namespace
	Options []string // more of systemd-nspawn's

	site *Site
	boot *exec.Cmd
	log  bytes.Buffer
	gone chan struct{}
}

// Write writes a file of the machine; path has no slash in front.
func (m *Machine) Write(path, text string) {
	m.site.T.Helper()
	full := filepath.Join(m.Root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		m.site.T.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		m.site.T.Fatal(err)
	}
}

// Boot starts the machine and waits until answers says that it does; it is stopped with the
// test.
func (m *Machine) Boot(answers func(context.Context) error) {
	s := m.site
	s.T.Helper()
	nspawn := m.nspawn()
	m.gone = make(chan struct{})
	if out, err := nspawn("true").CombinedOutput(); err != nil {
		s.Unavailable("systemd-nspawn: %v: %s", err, lastLine(out))
	}
	m.boot = nspawn("--boot")
	m.boot.Stdout, m.boot.Stderr = &m.log, &m.log
	if err := process.Start(m.boot); err != nil {
		s.T.Fatal(err)
	}
	go func(cmd *exec.Cmd, gone chan<- struct{}) {
		defer close(gone)
		_ = cmd.Wait() // how it ended is in its log
	}(m.boot, m.gone)
	s.T.Cleanup(func() {
		if s.T.Failed() && testing.Verbose() {
			s.T.Logf("%s:\n%s", m.Name, m.tail())
		}
		m.stop()
	})
	ctx, cancel := context.WithTimeout(s.T.Context(), 2*time.Minute)
	defer cancel()
	for {
		err := answers(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			said := lastLine(m.log.Bytes())
			m.stop()
			s.Unavailable("%s, booted by systemd-nspawn, does not answer: %v: %s", m.Name, err, said)
		}
		select {
		case <-m.gone:
			s.Unavailable("%s, booted by systemd-nspawn, has ended: %s", m.Name, lastLine(m.log.Bytes()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// nspawn returns how commands are made that start something in the machine: in its own control
// groups, as machines would else share those of services with the same name, and end each
// other's processes.
func (m *Machine) nspawn() func(args ...string) *exec.Cmd {
	s := m.site
	var join strings.Builder
	for _, dir := range cgroups(m.Netns) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			s.Unavailable("control group for a machine: %v", err)
		}
		s.T.Cleanup(func() { removeCgroup(s.T, dir) }) // after a second boot the first call finds none
		fmt.Fprintf(&join, "echo $$ > %s/cgroup.procs && ", dir)
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.Command("sh", append([]string{"-c", join.String() + `exec systemd-nspawn "$@"`, "sh",
			"--quiet", "--register=no", "--keep-unit", "--directory=" + m.Root,
			"--machine=" + m.Netns, "--network-namespace-path=" + namespace.Path(m.Netns), "--capability=CAP_NET_ADMIN,CAP_NET_RAW,CAP_BPF,CAP_PERFMON",
			"--bind=/dev/net/tun", "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe"}, append(m.Options, args...)...)...)
		cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network")
		return cmd
	}
}

// Booted is an answer for [Machine.Boot]: systemd has started what it starts by itself.
func (m *Machine) Booted(ctx context.Context) error {
	out, err := m.Run(ctx, "systemctl is-system-running || true")
	if state := strings.TrimSpace(out); err == nil && state != "running" && state != "degraded" {
		return fmt.Errorf("systemd says %q", state)
	}
	return err
}

// Run runs a command of the shell as root on the booted machine, and returns what it wrote.
func (m *Machine) Run(ctx context.Context, command string) (string, error) {
	first, err := process.Children(m.boot.Process.Pid)
	if err != nil || len(first) == 0 {
		return "", fmt.Errorf("%s has no first process: %w", m.Name, err)
	}
	cmd := exec.CommandContext(ctx, "nsenter", "--target", strconv.Itoa(first[0].PID), "--all", "--wdns=/",
		"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "sh", "-c", command)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // what it leaves behind may keep its output open
	if err := process.Start(cmd); err != nil {
		return "", err
	}
	err = cmd.Wait()
	return out.String(), err
}

// On runs a command that must succeed, and returns what it wrote.
func (m *Machine) On(command string) string {
	m.site.T.Helper()
	out, err := m.Run(m.site.T.Context(), command)
	if err != nil {
		m.site.T.Fatalf("%s: %s: %v\n%s", m.Name, command, err, out)
	}
	return out
}

// tail is what the machine says of services that failed, and the end of its journal.
func (m *Machine) tail() string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, _ := m.Run(ctx, "for u in $(systemctl --failed --plain --no-legend | cut -d' ' -f1); do systemctl status --no-pager -l $u; done; journalctl --no-pager -n 30 -o cat | grep -v -e pam_ -e sshd")
	return out
}

// PowerOff ends all that runs on the machine at once. Its files stay; it can boot again, with
// its radio's interface as a kernel finds it.
func (m *Machine) PowerOff() {
	m.site.T.Helper()
	_ = m.boot.Process.Kill() // ended with its groups, where it is slower
	endCgroups(m.Netns)
	<-m.gone
	for _, dir := range cgroups(m.Netns) {
		removeCgroup(m.site.T, dir)
	}
	m.site.IP(m.Netns, "address", "flush", "dev", "radio0")
	m.site.IP(m.Netns, "link", "set", "radio0", "down")
}

// stop shuts the machine down, and waits for it.
func (m *Machine) stop() {
	m.boot.Process.Signal(unix.SIGTERM) // systemd-nspawn hands it on; it may have gone already
	select {
	case <-m.gone:
	case <-time.After(time.Minute):
		endCgroups(m.Netns)
		<-m.gone
	}
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
