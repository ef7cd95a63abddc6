package cxxtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"linktrial/internal/checkout"
	"linktrial/internal/payload"
	"linktrial/protocols/contract"
)

// Hang bounds every wait; it is generous because the machine may be busy.
const Hang = 60 * time.Second

// Driver is a built driver.
type Driver struct {
	Dir      string
	Program  string
	Manifest *contract.Manifest
	// Options of every process, unless a test sets others.
	Options map[string]any
	// Environment is added to that of the tests, as "NAME=value".
	Environment []string
}

// building keeps parallel tests from running make in one folder at once.
var building sync.Mutex

// Build finds the driver of a name in LINKTRIAL_BIN, or builds it.
func Build(t testing.TB, name string) *Driver {
	t.Helper()
	out := filepath.Join(os.Getenv("LINKTRIAL_BIN"), "drivers")
	if _, err := os.Stat(filepath.Join(out, name, name)); os.Getenv("LINKTRIAL_BIN") == "" || err != nil {
		root, err := checkout.Root()
		if err != nil {
			t.Fatal(err)
		}
		cxx := filepath.Join(root, "protocols", "cxx")
		// A folder for each driver: their tests run at the same time.
		out = filepath.Join(cxx, "..", "..", "build", "cxxtest", name)
		args := []string{"-C", cxx, "OUT=" + out, name}
		// What make build compiled of this checkout is linked, not compiled again.
		bin, _ := filepath.Abs(filepath.Join(cxx, "..", "..", "bin"))
		if os.Getenv("LINKTRIAL_BIN") == bin {
			args = append(args, "OBJ="+filepath.Join(bin, "drivers.obj"))
		}
		building.Lock()
		defer building.Unlock()
		if b, err := exec.Command("make", args...).CombinedOutput(); err != nil {
			t.Fatalf("build the driver %s: %v\n%s", name, err, b)
		}
	}
	d := &Driver{Options: map[string]any{}, Dir: filepath.Join(out, name), Program: filepath.Join(out, name, name)}
	b, err := os.ReadFile(filepath.Join(d.Dir, "driver.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if d.Manifest, err = contract.ParseManifest("driver.yaml", b); err != nil {
		t.Fatal(err)
	}
	return d
}

// Process is a running driver.
type Process struct {
	t      testing.TB
	cmd    *exec.Cmd
	Events chan *contract.Event // closed at the end of standard output
	Stderr *bytes.Buffer        // once Wait has returned
	done   chan struct{}
	code   int
	source *payload.Source             // of a client; nil: it gets no payload
	handed map[string]*payload.Arrived // of a server, by transfer
}

// PayloadKey is the payload's of every client.
var PayloadKey = payload.NewKey(nil, 7)

// sourceOf is the payload that a document's client gets; nil: none.
func sourceOf(document []byte) *payload.Source {
	var p struct {
		Role     contract.Role
		Transfer struct {
			Size int64 `json:"size_bytes"`
		}
	}
	if json.Unmarshal(document, &p) != nil || p.Role != contract.RoleClient || p.Transfer.Size <= 0 {
		return nil
	}
	return payload.NewSource(PayloadKey, p.Transfer.Size)
}

// Start runs a driver with a document on standard input. The process does not
// outlive the test.
func (d *Driver) Start(t testing.TB, document []byte) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(d.Program), Events: make(chan *contract.Event, 1<<16), Stderr: &bytes.Buffer{}, done: make(chan struct{}), source: sourceOf(document), handed: map[string]*payload.Arrived{}}
	p.cmd.Stdin = payload.Input(document, p.source)
	p.cmd.Stderr = p.Stderr
	p.cmd.Env = append(os.Environ(), d.Environment...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		defer close(p.done)
		// Pdeathsig is about the thread that starts the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := p.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.read(out)
		err := p.cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("wait for the driver: %v", err)
		}
		p.code = p.cmd.ProcessState.ExitCode()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.done
	})
	return p
}

func (p *Process) read(out io.Reader) {
	defer close(p.Events)
	o := contract.NewOutput(out)
	for {
		e, _, block, err := o.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.t.Errorf("standard output: %v", err)
				_, _ = io.Copy(io.Discard, out)
			}
			return
		}
		if e.Event == contract.KindPayload {
			p.take(e.Transfer, block)
			continue
		}
		p.digest(e)
		p.Events <- e
	}
}

func (p *Process) take(transfer string, b []byte) {
	if p.handed[transfer] == nil {
		p.handed[transfer] = &payload.Arrived{}
	}
	p.handed[transfer].Add(b)
}

// digest completes a result, as Linktrial does.
func (p *Process) digest(e *contract.Event) {
	switch h := p.handed[e.Transfer]; {
	case e.Result == nil:
	case p.source != nil:
		e.Result.Digest = p.source.Digest(e.Result.SizeBytes)
	case h == nil:
		e.Result.Digest = (&payload.Arrived{}).Digest()
	default:
		e.Result.Digest = h.Digest()
	}
}

// Until waits for the next event of a kind, and returns it.
func (p *Process) Until(kind contract.Kind) *contract.Event {
	p.t.Helper()
	timeout := time.After(Hang)
	for {
		select {
		case e, ok := <-p.Events:
			if !ok {
				p.t.Fatalf("the driver ended without %s", kind)
			}
			if e.Event == kind {
				return e
			}
			if e.Event == contract.KindError {
				p.t.Fatalf("the driver reports %s (%s) before %s", e.Code, e.Message, kind)
			}
		case <-timeout:
			p.t.Fatalf("no %s within %s", kind, Hang)
		}
	}
}

// Wait waits for the end and returns the remaining events and the exit code,
// -1 after a signal.
func (p *Process) Wait() ([]*contract.Event, int) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(Hang):
		p.Kill()
		p.t.Fatalf("the driver runs for more than %s", Hang)
	}
	var all []*contract.Event
	for e := range p.Events {
		all = append(all, e)
	}
	return all, p.code
}

// Signal sends a signal; Kill sends SIGKILL.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }
func (p *Process) Kill()              { _ = p.cmd.Process.Kill() }

// CPU is the processor time of an ended process.
func (p *Process) CPU() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// Transfer is the identity that tests use.
const Transfer = "00112233445566778899aabbccddeeff"

// Parameters are a document's, with limits that only a hang reaches.
func (d *Driver) Parameters(role contract.Role, port int) *contract.Parameters {
	p := &contract.Parameters{
		Contract: contract.Version, Role: role, Device: "lo",
		Local:            contract.Endpoint{Address: "127.0.0.1"},
		Options:          maps.Clone(d.Options),
		Limits:           contract.Limits{ConnectMS: 20_000, TransferMS: 50_000},
		SampleIntervalMS: 100,
	}
	if role == contract.RoleServer {
		p.Local.Port = port
	} else {
		p.Remote = contract.Endpoint{Address: "127.0.0.1", Port: port}
		p.Transfer = contract.Transfer{ID: Transfer, SizeBytes: 100_000}
	}
	return p
}

// Document encodes parameters.
func Document(t testing.TB, p *contract.Parameters) []byte {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Serve starts a server and waits until it is ready.
func (d *Driver) Serve(t testing.TB, p *contract.Parameters) *Process {
	t.Helper()
	s := d.Start(t, Document(t, p))
	s.Until(contract.KindReady)
	return s
}

// ports counts those given away; they lie below those that the system gives
// to sockets that take any.
var ports atomic.Int64

// FreePort is a UDP port of the loopback interface that is free and that no
// other test of the process gets.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10_000 + int(int64(os.Getpid())*97+ports.Add(1))%20_000
		c, err := net.ListenPacket("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			return port
		}
	}
	t.Fatal("no free UDP port")
	return 0
}

// Only is the one event of a kind; the test fails where there is none or more.
func Only(t testing.TB, events []*contract.Event, kind contract.Kind) *contract.Event {
	t.Helper()
	var found []*contract.Event
	var seen []string
	for _, e := range events {
		seen = append(seen, strings.TrimSpace(string(e.Event)+" "+string(e.Code)+" "+e.Message))
		if e.Event == kind {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d events %s, expected one; all: %q", len(found), kind, seen)
	}
	return found[0]
}
