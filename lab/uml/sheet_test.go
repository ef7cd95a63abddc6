package uml

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/driverdigest"
	"linktrial/internal/radio"
	"linktrial/internal/scratch"
	"linktrial/internal/signature"
)

// line is a network of client, relay and server on one shared channel.
func line(rate float64, delay time.Duration, channel radio.Channel) *radio.Network {
	n := &radio.Network{MTUBytes: 1500, Medium: radio.MediumShared, Queue: radio.Queue{Packets: 100}}
	for _, r := range []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer} {
		n.Nodes = append(n.Nodes, radio.Node{Role: r, Address: radio.Addresses[r]})
	}
	n.Links = []radio.Link{
		{A: radio.RoleClient, B: radio.RoleRelay, RateBitsPerSecond: rate, Delay: delay, Channel: channel},
		{A: radio.RoleRelay, B: radio.RoleServer, RateBitsPerSecond: rate, Delay: delay, Channel: channel},
	}
	return n
}

func uniform(loss float64) radio.Channel {
	return radio.Channel{Model: radio.ChannelUniform, Loss: loss}
}

// treatments are one of every driver, by name.
var treatments = map[string]runsheet.Treatment{
	"tcp-cubic": {Protocol: "tcp", Options: map[string]any{"congestion": "cubic"}},
	"tcp-bbr":   {Protocol: "tcp", Options: map[string]any{"congestion": "bbr"}},
	"sctp":      {Protocol: "sctp", Options: map[string]any{"stack": "kernel"}},
	"udt":       {Protocol: "udt", Options: map[string]any{}},
	"haul":      {Protocol: "haul", Options: map[string]any{}},
	"quic":      {Protocol: "quic", Options: map[string]any{}},
	"lttcp":     {Protocol: "lttcp", Options: map[string]any{}},

	"tcp-radio":        {Protocol: "tcp", Options: map[string]any{"congestion": "radio"}, CompleteKnowledge: true},
	"tcp-radio-newrto": {Protocol: "tcp", Options: map[string]any{"congestion": "radio_newrto"}, CompleteKnowledge: true},
}

// plan makes a sheet of every treatment in turn.
func plan(t testing.TB, run string, n *radio.Network, size int64, iterations int, names ...string) Sheet {
	t.Helper()
	s := runsheet.Sheet{
		Format: runsheet.Format, Network: n, Control: runsheet.ControlOutOfBand, Order: "fixed", Seed: 1,
		Cell:           runsheet.Cell{SizeBytes: size},
		Limits:         runsheet.Limits{Connect: 5 * time.Minute, Transfer: 2 * time.Hour, Attempts: 1},
		SampleInterval: 100 * time.Millisecond,
	}
	for i, name := range names {
		tr, ok := treatments[name]
		if !ok {
			t.Fatalf("no treatment %q", name)
		}
		tr.Name, tr.Label, tr.Port, tr.DriverVersion = name, name, 7000+i, "1.0.0"
		s.Treatments = append(s.Treatments, tr)
	}
	for it := 1; it <= iterations; it++ {
		for _, name := range names {
			s.Trials = append(s.Trials, runsheet.Trial{
				Index: len(s.Trials), Iteration: it, Treatment: name, ChannelSeed: uint64(1000 + it),
				Flows: []runsheet.Flow{{Treatment: name, From: radio.RoleClient, To: radio.RoleServer, SizeBytes: size, PayloadSeed: uint64(it)}},
			})
		}
	}
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return Sheet{Run: run, Document: b, Signature: signature.SignSheet(signingKey, run, b), Network: n, Trials: len(s.Trials)}
}

// signingKey is trusted in the guests of these tests.
var (
	signingKey = ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	trusted    = []signature.PublicKey{signature.PublicOf(signingKey)}
)

// named has the sheet name the drivers that the bench has, and signs it.
func (b *bench) named(t testing.TB, s Sheet) Sheet {
	t.Helper()
	sheet, err := runsheet.Decode(s.Document)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sheet.Treatments {
		f, err := driverdigest.OfFolder(filepath.Join(b.drivers, sheet.Treatments[i].Protocol))
		if err != nil {
			t.Fatal(err)
		}
		sheet.Treatments[i].Digests = []string{string(f.Digest)}
	}
	if s.Document, err = sheet.Encode(); err != nil {
		t.Fatal(err)
	}
	s.Signature = signature.SignSheet(signingKey, s.Run, s.Document)
	return s
}

// attempts reads the terminal records of attempts from a client's journal.
func attempts(t testing.TB, path string) []journal.AttemptEnded {
	t.Helper()
	var out []journal.AttemptEnded
	for _, r := range records(t, path) {
		if r.Type == journal.TypeAttemptEnded {
			var e journal.AttemptEnded
			if err := json.Unmarshal(r.Body, &e); err != nil {
				t.Fatal(err)
			}
			out = append(out, e)
		}
	}
	return out
}

func records(t testing.TB, path string) []journal.Record {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []journal.Record
	if _, err := journal.Scan(f, func(r journal.Record, _ int64) error {
		out = append(out, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// value is what a person reads of an attempt.
func value(e journal.AttemptEnded) string {
	s := fmt.Sprintf("%-10s %-9s %s %s", e.Treatment, e.Verdict, e.Reason, e.Message)
	if len(e.Flows) > 0 && e.Flows[0].Result != nil {
		s += fmt.Sprintf(" %.3f s", float64(e.Flows[0].Result.ElapsedNS)/1e9)
	}
	if e.Log != "" {
		s += " log: " + e.Log
	}
	return s
}

// cached is the guest kernel, or the end of the test.
func cached(t testing.TB) Kernel {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the guest kernel is in root's cache, and guests read the whole file system")
	}
	k, err := CachedKernel("")
	if errors.Is(err, ErrNoKernel) {
		t.Skip("no guest kernel in the cache: build one with 'linktrial lab kernel'")
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// bench is what tests of whole runs need.
type bench struct {
	kernel              Kernel
	executable, drivers string
}

// newBench takes the product as built, where LINKTRIAL_BIN says it is, or builds
// what a guest needs of it.
func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{kernel: cached(t)}
	if bin := os.Getenv("LINKTRIAL_BIN"); bin != "" {
		b.executable, b.drivers = filepath.Join(bin, "linktrial"), filepath.Join(bin, "drivers")
		return b
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	b.executable, b.drivers = filepath.Join(dir, "linktrial"), filepath.Join(dir, "drivers")
	return b
}

// built is the folder of what [newBench] builds, once for all tests: the drivers in C++
// take more than a minute.
var built = sync.OnceValues(func() (dir string, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	if builtIn, err = scratch.New("linktrial-uml-test-"); err != nil {
		return "", err
	}
	dir = builtIn.Path
	if err := os.Chmod(dir, 0o755); err != nil { // for drivers of other users
		return "", err
	}
	drivers := filepath.Join(dir, "drivers")
	for _, c := range [][]string{
		{"go", "build", "-trimpath", "-o", filepath.Join(dir, "linktrial"), "./lab/uml/testdata/linktrial"},
		{"make", "-s", "go-drivers", "DRIVERS=" + drivers},
		{"make", "-s", "-C", "protocols/cxx", "OUT=" + drivers},
	} {
		cmd := exec.Command(c[0], c[1:]...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%v: %w\n%s", c, err, out)
		}
	}
	return dir, nil
})

var builtIn *scratch.Folder // what TestMain removes

func TestMain(m *testing.M) {
	code := m.Run()
	_ = builtIn.Remove() // the next one removes what is left
	os.Exit(code)
}
