//go:build images

package images

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/internal/enginetest"
	"linktrial/internal/process"
)

// These tests run the images on their own container engine. They take some minutes and
// need the programs of 'make build' in LINKTRIAL_BIN.

// machine is a container engine with the images of Linktrial.
type machine struct {
	t           *testing.T
	engine      *enginetest.Engine
	bin         string
	environment []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	needsPlugin(t, "buildx")
	needsPlugin(t, "compose")
	bin := os.Getenv("LINKTRIAL_BIN")
	if bin == "" {
		t.Fatal("LINKTRIAL_BIN is not set; expected the folder with linktrial and drivers/ (make build)")
	}
	e := enginetest.Start(t)
	m := &machine{t: t, engine: e, bin: bin, environment: []string{
		"DOCKER_HOST=" + e.Host, "LINKTRIAL_DOCKER_SOCKET=" + strings.TrimPrefix(e.Host, "unix://"), "BIN=" + bin, "CONTEXT=" + filepath.Join(t.TempDir(), "images"),
		"LINKTRIAL_DATABASE_PASSWORD=of-this-test",
	}}
	t.Log(m.must("images/build"))
	return m
}

func (m *machine) must(name string, args ...string) string {
	m.t.Helper()
	out, err := command(m.t, m.environment, name, args...)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// asks runs a program with an input and returns its output.
func (m *machine) asks(input, name string, args ...string) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), name, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = "..", append(os.Environ(), m.environment...), strings.NewReader(input)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s %q: %v: %s", name, args, err, complaint.String())
	}
	return string(out)
}

// pages gets the pages as a browser on the machine does.
func (m *machine) pages(url string) {
	m.t.Helper()
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // whom to trust is not what is tested here
		DialContext: func(_ context.Context, network, address string) (c net.Conn, err error) {
			err = process.InNamespace(m.engine.Namespace, func() (err error) {
				c, err = net.DialTimeout(network, address, 20*time.Second)
				return err
			})
			return c, err
		},
	}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Timeout: time.Minute, Transport: transport}).Get(url)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !bytes.Contains(b, []byte("<html")) {
		m.t.Errorf("%s: %s, %v: %.200s", url, answer.Status, err, b)
	}
}

// quickstart waits for the service that runs the quick start, and compares its output
// with that of a completed run.
func quickstartIsDone(t *testing.T, log string) {
	t.Helper()
	for _, want := range []string{"18/18", ": completed", "TCP CUBIC", "TCP BBR", "SCTP", "UDT", "Haul", "QUIC", "KB/s"} {
		if !strings.Contains(log, want) {
			t.Fatalf("no %q in\n%s", want, log)
		}
	}
}

func TestConformance(t *testing.T) {
	m := newMachine(t)
	for _, driver := range []string{"tcp", "sctp", "udt", "haul", "quic", "lttcp", "probe", "split"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			out, err := command(t, m.environment, filepath.Join(m.bin, "linktrial"), "protocol", "check", "linktrial/"+driver+":latest")
			t.Log(out)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCompose(t *testing.T) {
	m := newMachine(t)
	compose := func(args ...string) string {
		t.Helper()
		return m.must("docker", append([]string{"compose"}, args...)...)
	}
	began := time.Now()
	compose("up", "--detach")
	t.Logf("up after %.1f s", time.Since(began).Seconds())
	if code := strings.TrimSpace(m.must("docker", "wait", "linktrial-quickstart-1")); code != "0" {
		t.Errorf("the quick start ended with %s", code)
	}
	t.Logf("table after %.1f s", time.Since(began).Seconds())
	quickstartIsDone(t, compose("logs", "--no-color", "quickstart"))
	m.pages("http://127.0.0.1:7700/")

	// Nothing that a trial has started is left; the database is TimescaleDB.
	if left := strings.TrimSpace(m.must("docker", "ps", "--all", "--quiet", "--filter", "label=linktrial.role=client")); left != "" {
		t.Errorf("containers of trials are left: %s", left)
	}
	hypertables := compose("exec", "-T", "database", "psql", "-U", "linktrial", "-h", "/tmp", "-Atc", "SELECT hypertable_name FROM timescaledb_information.hypertables")
	if !strings.Contains(hypertables, "samples") {
		t.Errorf("hypertables: %q", hypertables)
	}

	// Another version in the place of the first keeps the data.
	compose("down")
	m.environment = append(m.environment, "TAG=another", "LINKTRIAL_TAG=another")
	t.Log(m.must("images/build"))
	compose("up", "--detach")
	// The leading agent is killed during a run, and its network with it; the run continues.
	for begin := time.Now(); !strings.Contains(compose("logs", "--no-color", "quickstart"), " 4/18 "); time.Sleep(200 * time.Millisecond) {
		if time.Since(begin) > 5*time.Minute {
			t.Fatal("the second quick start does not get to its fourth trial")
		}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(m.must("docker", "inspect", "--format", "{{.State.Pid}}", "linktrial-client-1")))
	if err != nil || pid < 2 {
		t.Fatalf("process of the client's agent: %d, %v", pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := strings.TrimSpace(m.must("docker", "wait", "linktrial-quickstart-1")); code != "0" {
		t.Errorf("the second quick start ended with %s", code)
	}
	after := compose("logs", "--no-color", "quickstart")
	quickstartIsDone(t, after)
	if strings.Contains(after, "failed") {
		t.Errorf("trials fail after the agent was killed:\n%s", after)
	}
	runs := compose("exec", "-T", "orchestrator", "/linktrial", "run", "list")
	if n := strings.Count(runs, "completed"); n != 2 {
		t.Errorf("%d runs are completed, expected 2:\n%s", n, runs)
	}
	// What a confined driver needs its capabilities for: a route of its own connection,
	// and a congestion control that it brings along.
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(plan, []byte(routedPlan), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(plan), 0o755); err != nil {
		t.Fatal(err)
	}
	log := compose("run", "--rm", "-T", "--volume", plan+":/plan.yaml:ro", "quickstart", "run", "--nodes", "3", "/plan.yaml")
	if !strings.Contains(log, "3/3") || !strings.Contains(log, ": completed") || strings.Contains(log, "failed") {
		t.Errorf("a plan with routes of the connections' own and eBPF:\n%s", log)
	}
	compose("down", "--volumes")
	if left := strings.TrimSpace(m.must("docker", "ps", "--all", "--quiet") + m.must("docker", "volume", "ls", "--quiet")); left != "" {
		t.Errorf("containers and volumes left: %s", left)
	}
}

const routedPlan = `name: routed
radio: prc-117g-anw2c
topology: vip-lot
size: 32 KiB
treatments:
  - {name: wide, label: TCP with a wide window, protocol: tcp, options: {initial_window: 20}}
  - {name: marked, label: TCP with ECN, protocol: tcp, options: {ecn: true}}
  - {name: radio, label: TCP-radio, protocol: tcp, options: {congestion: radio, window: 30 KiB}}
iterations: 1
seed: 1
`

// radiosPlan needs two radios on a node, and with MPTCP the paths that its driver sets
// up in the node's network.
const radiosPlan = `name: radios
radio: transports-link
topology: two-radios
size: 256 KiB
treatments:
  - {name: first, label: First radio, protocol: tcp}
  - {name: second, label: Second radio, protocol: tcp, second_radio: true}
  - {name: both, label: MPTCP, protocol: tcp, options: {multipath: true}}
iterations: 1
seed: 1
`

// Emulated radios on the machine itself, with the drivers of its engine.
func TestRehearse(t *testing.T) {
	m := newMachine(t)
	dir, err := os.MkdirTemp("/var/tmp", "linktrial-images-") // the database's own user must be able to reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, trials, result string }{
		{routedPlan, "3/3", `"image:sha256:`},
		{radiosPlan, "3/3", `"device": "radio1"`},
	} {
		plan := filepath.Join(dir, "plan.yaml")
		if err := os.WriteFile(plan, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		log := m.must(filepath.Join(m.bin, "linktrial"), "rehearse", plan, "--runner", "docker", "--data", dir, "--out", filepath.Join(dir, "out"), "--orchestrator", "http://127.0.0.1:9")
		if !strings.Contains(log, c.trials) || strings.Contains(log, "failed") {
			t.Errorf("rehearsal:\n%s", log)
		}
		results, err := os.ReadFile(filepath.Join(dir, "out", "results.json"))
		if err != nil || !bytes.Contains(results, []byte(c.result)) {
			t.Errorf("no %s in the results: %v\n%s", c.result, err, log)
		}
	}
	if left := strings.TrimSpace(m.must("docker", "ps", "--all", "--quiet")); left != "" {
		t.Errorf("containers left: %s", left)
	}
}

func TestComposeWithTLS(t *testing.T) {
	m := newMachine(t)
	m.environment = append(m.environment, "COMPOSE_FILE=docker-compose.yml:docker-compose.tls.yml")
	compose := func(args ...string) string {
		t.Helper()
		return m.must("docker", append([]string{"compose"}, args...)...)
	}
	compose("up", "--detach")
	compose("up", "--detach", "--wait", "client", "relay", "server") // not of what has no health to ask for
	const password = "a password for the test"
	in := func(input string, args ...string) string {
		t.Helper()
		return m.asks(input, "docker", append([]string{"compose", "exec", "-T", "orchestrator", "/linktrial"}, args...)...)
	}
	in(password+"\n"+password+"\n", "user", "add", "anna", "--role", "admin", "--password-stdin")
	in(password+"\n", "login", "anna", "--password-stdin")
	if nodes := in("", "node", "list"); strings.Count(nodes, " enrolled ") != 3 {
		t.Errorf("nodes:\n%s", nodes)
	}
	if out, err := command(t, m.environment, "docker", "compose", "run", "--rm", "-T", "approve"); err == nil || !strings.Contains(err.Error(), "log in") {
		t.Errorf("nobody approves images: %v: %s", err, out)
	}
	m.environment = append(m.environment, "LINKTRIAL_TOKEN="+strings.TrimSpace(in("", "token", "create", "compose", "--role", "admin", "--valid", "1d")))
	compose("run", "--rm", "-T", "approve")
	quickstartIsDone(t, compose("run", "--rm", "-T", "quickstart"))
	m.pages("https://127.0.0.1:7700/")
	compose("down", "--volumes")
}
