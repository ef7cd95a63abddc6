package playbooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
	t       *testing.T
	name    string // of its namespaces
	dir     string
	key     string // SSH
	targets map[string]*target
	serves  bool // an orchestrator of the test itself
}

// target is one machine: Debian booted by systemd-nspawn on an overlay.
type target struct {
	name    string
	suite   string // of Debian
	address string // control network
	root    string // mounted
	changed string // what differs from the base
	netns   string
	options []string // more of systemd-nspawn's
	boot    *exec.Cmd
	log     bytes.Buffer
	gone    chan struct{}
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
	s := &site{t: t, name: fmt.Sprintf("ltp%d", os.Getpid()), targets: map[string]*target{}}
	tools(t)
	sweep(t)
	base(t, suite)
	// Not below the temporary folder: an overlay's folders must be unmounted before they are removed.
	s.dir = filepath.Join("/var/tmp", s.name)
	if err := os.MkdirAll(s.dir, 0o711); err != nil { // an orchestrator's database in it belongs to another user
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(s.dir); err != nil {
			t.Error(err)
		}
	})
	s.key = filepath.Join(s.dir, "key")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.key)
	if err := namespace.Make(s.control()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := namespace.Remove(s.control()); err != nil {
			t.Error(err)
		}
	})
	for _, link := range []string{"control", "radios"} {
		s.ip(s.control(), "link", "add", link, "type", "bridge")
		s.ip(s.control(), "link", "set", link, "up")
	}
	s.ip(s.control(), "address", "add", "10.231.0.1/24", "dev", "control")
	return s
}

func (s *site) control() string { return s.name + "c" }

func (s *site) ip(netns string, args ...string) {
	s.t.Helper()
	run(s.t, "ip", append([]string{"-n", netns}, args...)...)
}

// addOf makes a target of a suite of Debian; prepare may change its files before
// it boots.
func (s *site) addOf(suite, name string, prepare func(tg *target)) *target {
	s.t.Helper()
	base(s.t, suite)
	n := len(s.targets) + 1
	tg := &target{name: name, suite: suite, address: fmt.Sprintf("10.231.0.%d", 10+n), netns: fmt.Sprintf("%sn%d", s.name, n), gone: make(chan struct{})}
	dir := filepath.Join(s.dir, name)
	tg.root, tg.changed = filepath.Join(dir, "root"), filepath.Join(dir, "changed")
	for _, d := range []string{tg.root, tg.changed, filepath.Join(dir, "work")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", filepath.Join(cache, suite), tg.changed, filepath.Join(dir, "work"))
	if err := unix.Mount("overlay", tg.root, "overlay", 0, options); err != nil {
		unavailable(s.t, "mount of an overlay, %s: %v", options, err)
	}
	s.t.Cleanup(func() {
		if err := unix.Unmount(tg.root, unix.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
	if err := namespace.Make(tg.netns); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := namespace.Remove(tg.netns); err != nil {
			s.t.Error(err)
		}
	})
	for _, l := range []struct{ bridge, device string }{{"control", "control0"}, {"radios", "radio0"}} {
		peer := fmt.Sprintf("%s%d", l.bridge, n)
		s.ip(s.control(), "link", "add", peer, "type", "veth", "peer", "name", l.device, "netns", tg.netns)
		s.ip(s.control(), "link", "set", peer, "master", l.bridge, "up")
	}
	s.ip(tg.netns, "address", "add", tg.address+"/24", "dev", "control0")
	s.ip(tg.netns, "link", "set", "control0", "up")

	public, err := os.ReadFile(s.key + ".pub")
	if err != nil {
		s.t.Fatal(err)
	}
	tg.write(s.t, "root/.ssh/authorized_keys", string(public))
	tg.write(s.t, "etc/hostname", name+"\n")
	// A container may not set the machine's clock: chrony runs and sets nothing.
	tg.write(s.t, "etc/systemd/system/chrony.service.d/container.conf",
		"[Unit]\nConditionCapability=\n[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd -x\n")
	if prepare != nil {
		prepare(tg)
	}
	s.targets[name] = tg
	s.start(tg)
	return tg
}

// online lets a target install packages, through the proxy.
func (s *site) online(tg *target) {
	tg.write(s.t, "etc/apt/apt.conf.d/proxy", `Acquire::http::Proxy "http://10.231.0.1:3142";`+"\n")
	tg.write(s.t, "etc/apt/sources.list", "deb http://deb.debian.org/debian "+tg.suite+" main\n")
}

func (tg *target) write(t *testing.T, path, text string) {
	t.Helper()
	full := filepath.Join(tg.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *site) start(tg *target) {
	s.t.Helper()
	// In its own control groups: otherwise machines would share those of services with the
	// same name, and end each other's processes.
	var join strings.Builder
	for _, dir := range cgroups(tg.netns) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			unavailable(s.t, "control group for a machine: %v", err)
		}
		s.t.Cleanup(func() { removeCgroup(s.t, dir) })
		fmt.Fprintf(&join, "echo $$ > %s/cgroup.procs && ", dir)
	}
	nspawn := func(args ...string) *exec.Cmd {
		cmd := exec.Command("sh", append([]string{"-c", join.String() + `exec systemd-nspawn "$@"`, "sh",
			"--quiet", "--register=no", "--keep-unit", "--directory=" + tg.root,
			"--machine=" + tg.netns, "--network-namespace-path=" + namespace.Path(tg.netns), "--capability=CAP_NET_ADMIN,CAP_NET_RAW,CAP_BPF,CAP_PERFMON",
			"--bind=/dev/net/tun", "--resolv-conf=off", "--timezone=off", "--link-journal=no", "--console=pipe"}, append(tg.options, args...)...)...)
		cmd.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE=network")
		return cmd
	}
	if out, err := nspawn("true").CombinedOutput(); err != nil {
		unavailable(s.t, "systemd-nspawn: %v: %s", err, lastLine(out))
	}
	tg.boot = nspawn("--boot")
	tg.boot.Stdout, tg.boot.Stderr = &tg.log, &tg.log
	if err := process.Start(tg.boot); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(tg.gone)
		_ = tg.boot.Wait() // how it ended is in its log
	}()
	s.t.Cleanup(func() {
		if s.t.Failed() && testing.Verbose() {
			s.t.Logf("%s:\n%s", tg.name, s.tail(tg))
		}
		tg.stop()
	})
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		if _, err := s.ssh(ctx, tg, "true"); err == nil {
			return
		} else if ctx.Err() != nil {
			tg.stop()
			unavailable(s.t, "%s, booted by systemd-nspawn, does not answer: %v: %s", tg.name, err, lastLine(tg.log.Bytes()))
		}
		select {
		case <-tg.gone:
			unavailable(s.t, "%s, booted by systemd-nspawn, has ended: %s", tg.name, lastLine(tg.log.Bytes()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// cgroups returns the folders of a control group in the hierarchies that systemd uses.
func cgroups(name string) []string {
	var out []string
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil {
			out = append(out, filepath.Join(root, name))
		}
	}
	return out
}

// removeCgroup removes a control group with those below it. It retries while the last
// processes in it are ending.
func removeCgroup(t *testing.T, dir string) {
	var folders []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // groups go away by themselves meanwhile
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	slices.Reverse(folders)
	for _, f := range folders {
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			err := unix.Rmdir(f)
			if err == nil || errors.Is(err, unix.ENOENT) {
				break
			}
			if time.Now().After(end) {
				t.Errorf("control group %s: %v", f, err)
				return
			}
		}
	}
}

// stop shuts a machine down, and waits for it.
func (tg *target) stop() {
	tg.boot.Process.Signal(unix.SIGTERM) // systemd-nspawn hands it on; it may have gone already
	select {
	case <-tg.gone:
	case <-time.After(time.Minute):
		endCgroups(tg.netns)
		<-tg.gone
	}
}

// endCgroups kills the processes in a machine's control groups, which outlive a killed
// systemd-nspawn.
func endCgroups(name string) {
	for _, dir := range cgroups(name) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // there is none in the old hierarchy, nor one that has gone
	}
}

var siteForm = regexp.MustCompile(`^(ltp([0-9]+))(c|n[0-9])?$`)

// sweep removes what a killed test has left behind.
func sweep(t *testing.T) {
	t.Helper()
	sites := map[string]bool{}
	for _, pattern := range append(cgroups("ltp*"), "/var/tmp/ltp*", namespace.Path("ltp*")) {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			m := siteForm.FindStringSubmatch(filepath.Base(path))
			if m == nil {
				continue
			}
			if _, err := os.Stat("/proc/" + m[2]); err == nil {
				continue // that test is at work
			}
			sites[m[1]] = true
		}
	}
	for name := range sites {
		dir := filepath.Join("/var/tmp", name)
		for n := range 10 {
			machine := fmt.Sprintf("%sn%d", name, n)
			endCgroups(machine)
			for _, group := range cgroups(machine) {
				if _, err := os.Stat(group); err == nil {
					removeCgroup(t, group)
				}
			}
			if _, err := os.Stat(namespace.Path(machine)); err == nil {
				run(t, "ip", "netns", "delete", machine)
			}
		}
		if _, err := os.Stat(namespace.Path(name + "c")); err == nil {
			run(t, "ip", "netns", "delete", name+"c")
		}
		roots, err := filepath.Glob(filepath.Join(dir, "*", "root"))
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range roots {
			_ = unix.Unmount(root, unix.MNT_DETACH) // it may not be mounted
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

func (s *site) tail(tg *target) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, _ := s.ssh(ctx, tg, "for u in $(systemctl --failed --plain --no-legend | cut -d' ' -f1); do systemctl status --no-pager -l $u; done; journalctl --no-pager -n 30 -o cat | grep -v -e pam_ -e sshd")
	return out
}

var sshOptions = []string{"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "ConnectTimeout=10", "-o", "IdentitiesOnly=yes"}

// ssh runs a command on a target and returns its output.
func (s *site) ssh(ctx context.Context, tg *target, command string) (string, error) {
	args := append([]string{"-i", s.key}, sshOptions...)
	cmd := exec.CommandContext(ctx, "ssh", append(args, "root@"+tg.address, command)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := process.StartIn(cmd, namespace.Path(s.control())); err != nil {
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
		s.t.Fatalf("%s: %s: %v\n%s", tg.name, command, err, out)
	}
	return out
}
