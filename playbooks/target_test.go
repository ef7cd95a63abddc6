package playbooks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/machinetest"
	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// cache holds downloads; it is outside the checkout and is kept.
const cache = "/var/cache/linktrial/targets"

// basePackages are those of a freshly installed Debian with an SSH server.
const basePackages = "systemd,systemd-sysv,dbus,openssh-server,python3,python3-apt,iproute2"

const suite = "bookworm"

// site is the machines of one test and the networks between them: a control
// network with an apt proxy as the only way out, and a network in the place of
// the radios.
type site struct {
	*machinetest.Site
	t       *testing.T
	key     string // SSH
	targets map[string]*target
	serves  bool // an orchestrator of the test itself
}

// target is one machine of a suite of Debian, with an SSH server.
type target struct {
	*machinetest.Machine
	suite string
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// unavailable ends a test that this machine cannot run: it fails where machines are
// required, and is skipped with the reason otherwise.
func unavailable(t *testing.T, format string, args ...any) {
	t.Helper()
	if required {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// tools ends the test where a program that makes the machines is missing.
func tools(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		unavailable(t, "needs root: boots machines with systemd-nspawn")
	}
	for _, program := range []string{"debootstrap", "ip", "ssh", "ssh-keygen", "systemd-nspawn"} {
		if _, err := exec.LookPath(program); err != nil {
			unavailable(t, "%s is not installed (scripts/install-deps ansible)", program)
		}
	}
	if _, err := os.Stat(ansible("ansible-playbook")); err != nil {
		unavailable(t, "Ansible is not installed (scripts/install-deps ansible): %v", err)
	}
}

// base makes the root that all targets of a suite start from, once.
func base(t *testing.T, suite string) {
	t.Helper()
	dir := filepath.Join(cache, suite)
	if _, err := os.Stat(dir); err == nil {
		return
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	part := fmt.Sprintf("%s.%d", dir, os.Getpid())
	defer os.RemoveAll(part) // only what was cut off is still there
	out, err := exec.Command("debootstrap", "--variant=minbase", "--include="+basePackages, suite, part).CombinedOutput()
	if err != nil {
		unavailable(t, "debootstrap %s: %v: %s", suite, err, lastLine(out))
	}
	if err := os.Rename(part, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // nor has another test made it meanwhile
			t.Fatal(err)
		}
	}
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

func newSite(t *testing.T) *site {
	t.Helper()
	tools(t)
	s := &site{Site: machinetest.New(t, required), t: t, targets: map[string]*target{}}
	base(t, suite)
	s.key = filepath.Join(s.Dir, "key")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.key)
	return s
}

// addOf makes a target of a suite of Debian; prepare may change its files before
// it boots.
func (s *site) addOf(suite, name string, prepare func(tg *target)) *target {
	s.t.Helper()
	base(s.t, suite)
	tg := &target{Machine: s.Add(filepath.Join(cache, suite), name), suite: suite}
	public, err := os.ReadFile(s.key + ".pub")
	if err != nil {
		s.t.Fatal(err)
	}
	tg.Write("root/.ssh/authorized_keys", string(public))
	// A container may not set the machine's clock: chrony runs and sets nothing.
	tg.Write("etc/systemd/system/chrony.service.d/container.conf",
		"[Unit]\nConditionCapability=\n[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd -x\n")
	if prepare != nil {
		prepare(tg)
	}
	s.targets[name] = tg
	tg.Boot(func(ctx context.Context) error {
		_, err := s.ssh(ctx, tg, "true")
		return err
	})
	return tg
}

// online lets a target install packages, through the proxy.
func (s *site) online(tg *target) {
	tg.Write("etc/apt/apt.conf.d/proxy", `Acquire::http::Proxy "http://10.231.0.1:3142";`+"\n")
	tg.Write("etc/apt/sources.list", "deb http://deb.debian.org/debian "+tg.suite+" main\n")
}

var sshOptions = []string{"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10", "-o", "IdentitiesOnly=yes"}

// ssh runs a command on a target and returns its output.
func (s *site) ssh(ctx context.Context, tg *target, command string) (string, error) {
	args := append([]string{"-i", s.key}, sshOptions...)
	cmd := exec.CommandContext(ctx, "ssh", append(args, "root@"+tg.Address, command)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := process.StartIn(cmd, namespace.Path(s.Namespace())); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}

// on runs a command on a target that must succeed.
func (s *site) on(tg *target, command string) string {
	s.t.Helper()
	out, err := s.ssh(s.t.Context(), tg, command)
	if err != nil {
		s.t.Fatalf("%s: %s: %v\n%s", tg.Name, command, err, out)
	}
	return out
}
