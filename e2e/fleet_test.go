package e2e

import (
	"bytes"
	"encoding/json"
	"io"
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

	"linktrial/internal/testkind"
)

// served is an orchestrator that brings up its own lab.
type served struct {
	*program
	serve *running
	addr  string
}

func newServed(t *testing.T) *served {
	t.Helper()
	p := &served{program: newProgram(t), addr: freeAddr(t)}
	t.Cleanup(p.nothingOfLab)
	p.up()
	return p
}

func (p *served) up() {
	p.t.Helper()
	p.serve = p.start("serve", "--listen", p.addr)
	p.serve.waitFor("orchestrator is ready", time.Minute)
}

// namespaces of the orchestrator's own lab.
func (p *served) namespaces() []string {
	p.t.Helper()
	_, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	found, err := filepath.Glob("/run/netns/lt-serve-" + port + "-*")
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

func (p *served) nothingOfLab() {
	p.t.Helper()
	_, port, _ := net.SplitHostPort(p.addr)
	if left := p.namespaces(); len(left) > 0 {
		p.t.Errorf("namespaces left behind: %v", left)
	}
	if _, err := os.Stat("/run/linktrial/labs/serve-" + port); err == nil {
		p.t.Error("the lab's folder is left behind")
	}
}

// cli runs a subcommand against the orchestrator.
func (p *served) cli(args ...string) (stdout string, code int) {
	p.t.Helper()
	stdout, stderr, code := p.run(append(args, "--orchestrator", "http://"+p.addr)...)
	return stdout + stderr, code
}

// call makes a call as the pages do, and returns the answer or the text of the error.
func (p *served) call(method string, request, answer any) string {
	p.t.Helper()
	b, err := json.Marshal(request)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := http.Post("http://"+p.addr+"/linktrial.v1."+method, "application/json", bytes.NewReader(b))
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		return string(body)
	}
	if answer != nil {
		if err := json.Unmarshal(body, answer); err != nil {
			p.t.Fatalf("%s: %v: %s", method, err, body)
		}
	}
	return ""
}

type labStatus struct {
	Up    bool
	Nodes []struct {
		Name        string
		ControlLink bool
		Agent       bool
	}
	Radios      []map[string]any
	Unavailable string
}

func (p *served) lab(radio, topology string) {
	p.t.Helper()
	if refusal := p.call("LabService/LabUp", map[string]string{"radio": radio, "topology": topology}, nil); refusal != "" {
		p.t.Fatal(refusal)
	}
	nodes := func() string { out, _ := p.cli("nodes"); return out }
	waitUntil(p.t, "the agents connect", 30*time.Second, func() bool {
		return len(regexp.MustCompile(`(?m)^(client|relay|server) .* connected `).FindAllString(nodes(), -1)) == 3
	}, nodes)
}

// line returns a row of a preflight's table.
func line(out, node, peer, kind string) string {
	form := `(?m)^` + node + `\s+` + kind + `\s.*$`
	if peer != "" {
		form = `(?m)^` + node + `\s+` + peer + `\s+` + kind + `\s.*$`
	}
	return regexp.MustCompile(form).FindString(out)
}

func TestPreflight(t *testing.T) {
	testkind.Waits("for measurements of links, and for what does not answer")
	p := newServed(t)
	p.lab("prc-117g-anw2c", "vip-lot")
	look := func() (string, int) { return p.cli("preflight", "--topology", "vip-lot", "--radio", "prc-117g-anw2c") }

	out, code := look()
	if code != 0 || strings.Contains(out, "FAILED") || strings.Contains(out, "unknown ") || !strings.Contains(out, "0 warnings, 0 failed, 0 unknown") {
		t.Fatalf("exit %d, expected all green:\n%s", code, out)
	}
	for _, from := range []string{"client", "relay", "server"} {
		for _, to := range []string{"client", "relay", "server"} {
			if from != to && (!strings.Contains(line(out, from, to, "reach"), " ok ") || !strings.Contains(line(out, from, to, "mtu"), "1500 bytes pass")) {
				t.Errorf("%s does not reach %s:\n%s", from, to, out)
			}
		}
	}
	var links struct {
		Links []struct {
			RttSeconds float64
			Reachable  bool
		}
	}
	p.call("FleetService/Links", struct{}{}, &links)
	if len(links.Links) != 6 {
		t.Errorf("links %v", links)
	}
	for _, l := range links.Links {
		// Two hops of 20 ms each way at least.
		if !l.Reachable || l.RttSeconds < 0.04 {
			t.Errorf("link %v", l)
		}
	}

	// An interface whose MTU is not the radio's.
	namespace := ""
	for _, n := range p.namespaces() {
		if strings.HasSuffix(n, "-client") {
			namespace = filepath.Base(n)
		}
	}
	mtu := func(bytes string) {
		t.Helper()
		if out, err := exec.Command("ip", "-n", namespace, "link", "set", "dev", "radio0", "mtu", bytes).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	mtu("1000")
	out, code = look()
	if code != 1 || !strings.Contains(line(out, "client", "", "radio"), "FAILED") || !strings.Contains(line(out, "client", "relay", "mtu"), "FAILED") || !strings.Contains(out, "mtu 1500") {
		t.Errorf("exit %d, expected the MTU to be red, and what to do:\n%s", code, out)
	}
	mtu("1500")

	// A control link that is cut.
	if refusal := p.call("LabService/SetControlLink", map[string]any{"node": "client", "up": false}, nil); refusal != "" {
		t.Fatal(refusal)
	}
	out, code = look()
	if code != 1 || !strings.Contains(line(out, "client", "", "contact"), "FAILED") || !strings.Contains(out, "control link") || !strings.Contains(line(out, "relay", "client", "reach"), " ok ") {
		t.Errorf("exit %d, expected the contact of the client to be red, what to do, and that the relay still reaches it over the radio:\n%s", code, out)
	}
	var st labStatus
	p.call("LabService/LabStatus", struct{}{}, &st)
	if !st.Up || len(st.Nodes) != 3 || len(st.Radios) != 4 {
		t.Errorf("status %+v", st)
	}
	for _, n := range st.Nodes {
		if n.ControlLink != (n.Name != "client") || !n.Agent {
			t.Errorf("node %+v", n)
		}
	}

	p.serve.cmd.Process.Signal(syscall.SIGTERM)
	if code := p.serve.wait(40 * time.Second); code != 0 {
		t.Errorf("serve ended with %d", code)
	}
	p.nothingOfLab()
}

const meadow = `name: meadow
title: A meadow
source: drawn for this test
stations:
  - {name: a, role: server, latitude: 39.030, longitude: -76.96, elevation: 10 m}
  - {name: r, role: relay, latitude: 39.033, longitude: -76.96, elevation: 11 m}
  - {name: b, role: client, latitude: 39.036, longitude: -76.96, elevation: 12 m}
links:
  - {between: [client, relay], source: computed}
  - {between: [relay, server], source: computed}
`

// A plan starts at its time, by an orchestrator that was killed in between,
// which also removes the lab that the killed one left behind.
func TestScheduleSurvivesAKill(t *testing.T) {
	p := newServed(t)
	p.lab("prc-117g-anw2c", "vip-lot")
	file := p.plan("short.yaml", short)
	if out, code := p.cli("plan", "save", file); code != 0 || !strings.Contains(out, "revision 1") {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	if out, code := p.cli("plan", "show", "short"); code != 0 || out != short {
		t.Errorf("exit %d, expected the plan's text:\n%s", code, out)
	}
	if out, code := p.cli("plan", "list"); code != 0 || !strings.Contains(out, "quickstart") || !strings.Contains(out, "short") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	// A saved topology is listed at once, and after the kill.
	if err := os.WriteFile(filepath.Join(p.work, "meadow.yaml"), []byte(meadow), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, code := p.cli("topology", "save", filepath.Join(p.work, "meadow.yaml")); code != 0 {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	if out, code := p.cli("topology", "save", file); code == 0 || !regexp.MustCompile(`short\.yaml:\d+:1: unknown key "iterations"`).MatchString(out) {
		t.Errorf("exit %d, expected a refusal with lines:\n%s", code, out)
	}
	if out, code := p.cli("plan", "schedule", "short", "+20s", "--name", "evening"); code != 0 || !strings.Contains(out, "schedule ") {
		t.Fatalf("exit %d:\n%s", code, out)
	}
	if out, code := p.cli("plan", "delete", "short"); code == 0 || !strings.Contains(out, "scheduled") {
		t.Errorf("exit %d, expected a refusal:\n%s", code, out)
	}
	kill(t, p.serve.cmd.Process.Pid)
	p.serve.wait(10 * time.Second)
	if len(p.namespaces()) == 0 {
		t.Fatal("the killed orchestrator left no lab behind: this test has nothing to see")
	}
	p.up()
	p.nothingOfLab()
	p.lab("prc-117g-anw2c", "meadow")
	if out, code := p.cli("topology", "show", "meadow"); code != 0 || out != meadow {
		t.Errorf("exit %d, expected the topology's text:\n%s", code, out)
	}
	runs := func() string { out, _ := p.cli("run", "list"); return out }
	waitUntil(t, "the scheduled plan completes", 3*time.Minute, func() bool { return strings.Contains(runs(), "completed") }, func() string {
		schedules, _ := p.cli("plan", "schedules")
		return runs() + schedules
	})
	if out, _ := p.cli("plan", "schedules"); strings.Count(out, "started") != 1 {
		t.Errorf("schedules:\n%s", out)
	}
	if out, code := p.cli("plan", "delete", "short"); code != 0 {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if refusal := p.call("LabService/LabDown", struct{}{}, nil); refusal != "" {
		t.Error(refusal)
	}
	p.nothingOfLab()
}

func TestNoLabWithoutRoot(t *testing.T) {
	p := newProgram(t)
	dir, err := os.MkdirTemp("/var/tmp", "linktrial-nolab-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("sh", "-c", `cp -r "$0"/* "$1" && chmod -R a+rX "$1" && chmod a+rwx "$1"`, p.bin, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	addr := freeAddr(t)
	cmd := exec.Command(filepath.Join(dir, "linktrial"), "serve", "--listen", addr, "--data", filepath.Join(dir, "data"))
	cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}()
	s := &served{program: p, addr: addr}
	waitUntil(t, "serve comes up", time.Minute, func() bool {
		res, err := http.Get("http://" + addr + "/healthz")
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	}, log.String)
	var st labStatus
	s.call("LabService/LabStatus", struct{}{}, &st)
	if st.Up || !strings.Contains(st.Unavailable, "root") {
		t.Errorf("status %+v, expected a sentence that asks for root", st)
	}
}
