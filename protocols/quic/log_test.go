package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"

	"linktrial/internal/payload"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

const loggedTransfer = "000102030405060708090a0b0c0d0e0f"

// end starts the driver as a process.
func end(t *testing.T, p *contract.Parameters) (*exec.Cmd, <-chan *contract.Event) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), endVariable+"=driver-"+string(p.Role))
	cmd.Stdin, cmd.Stderr = payload.Input(doc, sourceOf(p)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, hear(out)
}

// sourceOf is the payload that a driver with these parameters gets; nil: none.
func sourceOf(p *contract.Parameters) *payload.Source {
	if p.Role != contract.RoleClient {
		return nil
	}
	return payload.NewSource(benchKey, p.Transfer.SizeBytes)
}

// freePort asks the kernel for a UDP port of the loopback that nobody has.
func freePort(t *testing.T) int {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// logged are the parameters of both ends of a transfer with logs.
func logged(t *testing.T, folder string, set map[string]any) (server, client *contract.Parameters) {
	t.Helper()
	server = &contract.Parameters{Contract: contract.Version, Role: contract.RoleServer, Local: contract.Endpoint{Address: "127.0.0.1", Port: freePort(t)},
		Options: map[string]any{"qlog": true}, Limits: contract.Limits{ConnectMS: 10_000, TransferMS: 10_000}, LogFolder: folder}
	for k, v := range set {
		server.Options[k] = v
	}
	c := *server
	c.Role, c.Local, c.Remote = contract.RoleClient, contract.Endpoint{}, server.Local
	c.Transfer = contract.Transfer{ID: loggedTransfer, SizeBytes: 100_000, Seed: 1}
	return server, &c
}

// TestLogs: a transfer leaves one file for each end, with its name, that can be read
// from its first byte to its last.
func TestLogs(t *testing.T) {
	for _, events := range []bool{true, false} {
		t.Run(fmt.Sprintf("events=%t", events), func(t *testing.T) {
			folder := t.TempDir()
			p, q := logged(t, folder, map[string]any{"events": events})
			server, heard := end(t, p)
			await(t, heard, contract.KindReady)
			client, said := end(t, q)
			r := await(t, said, contract.KindResult).Result
			if got := r.Final.AckedBytes != nil; got != events {
				t.Errorf("with events=%t, the sample has acknowledged bytes: %t", events, got)
			}
			await(t, heard, contract.KindResult)
			if err := client.Wait(); err != nil {
				t.Error(err)
			}
			if err := server.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := server.Wait(); err != nil {
				t.Error(err)
			}
			if got, want := names(t, folder), []string{loggedTransfer + ".client.sqlog", loggedTransfer + ".server.sqlog"}; !slices.Equal(got, want) {
				t.Fatalf("the folder has %q, expected %q", got, want)
			}
			for _, role := range []string{"client", "server"} {
				checkLog(t, filepath.Join(folder, loggedTransfer+"."+role+".sqlog"), role)
			}
		})
	}
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// checkLog reads a log: a header of the right end, and what a connection does from
// its beginning to its end.
func checkLog(t *testing.T, path, role string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	records := bytes.Split(b, []byte{recordBegin})
	if len(records) < 3 || len(records[0]) > 0 {
		t.Fatalf("%s is no JSON text sequence: %.80q", path, b)
	}
	var head struct {
		Trace struct {
			VantagePoint struct{ Type string } `json:"vantage_point"`
		}
	}
	if err := json.Unmarshal(records[1], &head); err != nil || head.Trace.VantagePoint.Type != role {
		t.Errorf("the header of %s is of %q, expected %q: %v", path, head.Trace.VantagePoint.Type, role, err)
	}
	seen := map[string]int{}
	for _, r := range records[2:] {
		var e struct{ Name string }
		if err := json.Unmarshal(r, &e); err != nil {
			t.Fatalf("%s has a record that is no JSON: %q: %v", path, r, err)
		}
		seen[e.Name]++
	}
	busy := qlog.PacketSent{}.Name() // 100 kB are 69 packets at least
	if role == "server" {
		busy = qlog.PacketReceived{}.Name()
	}
	if seen[busy] < 69 || seen[qlog.ConnectionClosed{}.Name()] != 1 {
		t.Errorf("%s has the events %v", path, seen)
	}
}

// TestLogWithoutFolder: whoever asks for a log that cannot be is told so.
func TestLogWithoutFolder(t *testing.T) {
	p, q := logged(t, "", nil)
	for _, p := range []*contract.Parameters{p, q} {
		doc, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		code := harness.Run(manifest, harness.Driver{Query: query, Listen: listen, Dial: dial}, bytes.NewReader(doc), &out, io.Discard)
		if s := out.String(); code != contract.ExitUnsupported || !strings.Contains(s, `"unsupported"`) || !strings.Contains(s, "log_folder") {
			t.Errorf("%s: exit code %d and %s", p.Role, code, s)
		}
	}
}

// TestLogCannotBeWritten: the transfer goes on.
func TestLogCannotBeWritten(t *testing.T) {
	p, q := logged(t, filepath.Join(t.TempDir(), "none"), nil)
	server, heard := end(t, p)
	await(t, heard, contract.KindReady)
	client, said := end(t, q)
	await(t, said, contract.KindResult)
	if err := client.Wait(); err != nil {
		t.Error(err)
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

// TestLogSize: a log that reaches its size ends with a whole record.
func TestLogSize(t *testing.T) {
	p := &contract.Parameters{Role: contract.RoleServer, LogFolder: t.TempDir()}
	l := newLogFile(p)
	l.most = 2000
	r := l.trace(false, quic.ConnectionID{}).AddProducer()
	path := p.LogFile(loggedTransfer, qlogExtension)
	for range 10 {
		r.RecordEvent(qlog.ConnectionClosed{Reason: strings.Repeat("x", 20)})
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("there is a file before the transfer is known")
	}
	l.name(loggedTransfer)
	for range 100 {
		r.RecordEvent(qlog.ConnectionClosed{Reason: strings.Repeat("x", 20)})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 2000 || len(b) < 1500 {
		t.Errorf("the log has %d bytes, expected at most 2000 and as many records as go in", len(b))
	}
	for _, r := range bytes.Split(b, []byte{recordBegin})[1:] {
		if !json.Valid(r) {
			t.Errorf("the record %q is not whole", r)
		}
	}
}

// TestLogWithoutTransfer: a connection that ends before its header leaves nothing.
func TestLogWithoutTransfer(t *testing.T) {
	p := &contract.Parameters{Role: contract.RoleServer, LogFolder: t.TempDir()}
	l := newLogFile(p)
	r := l.trace(false, quic.ConnectionID{}).AddProducer()
	for range 2 * maxNameless / 100 { // more than is kept
		r.RecordEvent(qlog.ConnectionClosed{Reason: strings.Repeat("x", 20)})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if l.waiting.Cap() > 0 {
		t.Errorf("%d bytes are still kept", l.waiting.Cap())
	}
	if got := names(t, p.LogFolder); len(got) > 0 {
		t.Errorf("the folder has %q", got)
	}
}
