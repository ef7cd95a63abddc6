package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func TestPlanWithThreeMistakes(t *testing.T) {
	p := newProgram(t)
	file := p.plan("bad.yaml", `name: bad
radio: prc-117g-anw2x
topology: vip-lot
size: 256 parsecs
treatments:
  - {name: tcp, label: TCP, protocol: tcp, options: {congestoin: cubic}}
iterations: 3
`)
	stdout, stderr, code := p.run("plan", "check", file)
	if code == 0 {
		t.Fatal("a plan with three mistakes is accepted")
	}
	for _, want := range []string{`bad\.yaml:2:\d+: .*prc-117g-anw2c`, `bad\.yaml:4:\d+: .*size`, `bad\.yaml:6:\d+: .*congestion`} {
		if !regexp.MustCompile(want).MatchString(stderr) {
			t.Errorf("no line like %s in:\n%s%s", want, stdout, stderr)
		}
	}
	if _, stderr, code := p.run("rehearse", file); code == 0 || strings.Count(stderr, "bad.yaml:") < 3 {
		t.Errorf("rehearse takes it, or does not name all mistakes (exit %d):\n%s", code, stderr)
	}
	nothingLeft(t)
}

func TestUnknownNamesListThoseThatExist(t *testing.T) {
	p := newProgram(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lab", "up", "--radio", "walkie-talkie"}, "prc-117g-anw2c"},
		{[]string{"lab", "up", "--topology", "moon"}, "vip-lot"},
		{[]string{"protocol", "check", "carrier-pigeon"}, "tcp"},
		{[]string{"profiles", "walkie-talkie"}, "prc-117g-anw2c"},
		{[]string{"lab", "down", "--name", "nowhere"}, "nowhere"},
	} {
		stdout, stderr, code := p.run(c.args...)
		if code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit %d, expected a refusal that names %q:\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
	nothingLeft(t)
}

func TestBusyPort(t *testing.T) {
	p := newProgram(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, stderr, code := p.run("serve", "--listen", l.Addr().String())
	if code == 0 || !strings.Contains(stderr, port) || !strings.Contains(stderr, "--listen") {
		t.Errorf("exit %d, expected one sentence that names port %s and --listen:\n%s", code, port, stderr)
	}
}

func TestNoPostgres(t *testing.T) {
	p := newProgram(t)
	// A root file system of its own in which the database's programs are hidden.
	empty := t.TempDir()
	cmd := exec.Command("unshare", "--mount", "--", "sh", "-c",
		`mount --bind "$0" /usr/lib/postgresql && exec "$@"`, empty, filepath.Join(p.bin, "linktrial"), "serve", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "LINKTRIAL_DATA="+p.data, "PATH=/usr/bin:/bin:/usr/sbin:/sbin")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "postgresql") {
		t.Errorf("%v, expected one sentence that says which package to install:\n%s", err, out)
	}
}

func TestNoTUN(t *testing.T) {
	p := newProgram(t)
	cmd := exec.Command("unshare", "--mount", "--", "sh", "-c",
		`mount -t tmpfs none /dev/net && exec "$@"`, "sh", filepath.Join(p.bin, "linktrial"), "lab", "up")
	cmd.Env = append(os.Environ(), "LINKTRIAL_DATA="+p.data)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "/dev/net/tun") {
		t.Errorf("%v, expected one sentence about /dev/net/tun:\n%s", err, out)
	}
	nothingLeft(t)
}

func TestNoRoot(t *testing.T) {
	p := newProgram(t)
	// A copy that an unprivileged user can reach.
	dir, err := os.MkdirTemp("/var/tmp", "linktrial-noroot-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("sh", "-c", `cp -r "$0"/* "$1" && chmod -R a+rX "$1" && chmod a+rwx "$1"`, p.bin, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(filepath.Join(dir, "linktrial"), "lab", "up")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LINKTRIAL_DATA=" + filepath.Join(dir, "data")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "root") {
		t.Errorf("%v, expected one sentence that asks for root:\n%s", err, out)
	}
}

// An unknown subcommand is an error that lists those that exist.
func TestUnknownCommands(t *testing.T) {
	p := newProgram(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "nonsense"}, "check, delete, explain"},
		{[]string{"run", "pasue", "x-1"}, "Did you mean pause?"},
		{[]string{"run", "nonsense"}, "pause"},
		{[]string{"lab", "upp"}, "Did you mean up?"},
		{[]string{"nonsense"}, "rehearse"},
	} {
		stdout, stderr, code := p.run(c.args...)
		if code == 0 || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%q: exit %d, expected an error with %q:\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
}

func TestHelpAndCompletion(t *testing.T) {
	p := newProgram(t)
	for _, args := range [][]string{
		{"--help"}, {"serve", "--help"}, {"agent", "--help"}, {"lab", "up", "--help"}, {"lab", "down", "--help"},
		{"plan", "check", "--help"}, {"plan", "explain", "--help"}, {"run", "--help"}, {"rehearse", "--help"},
		{"results", "--help"}, {"protocol", "list", "--help"}, {"protocol", "check", "--help"},
		{"nodes", "--help"}, {"run", "list", "--help"}, {"profiles", "--help"}, {"completion", "bash"},
	} {
		stdout, stderr, code := p.run(args...)
		if code != 0 || len(stdout) < 80 {
			t.Errorf("%q: exit %d:\n%s%s", args, code, stdout, stderr)
		}
	}
}
