package protocoltest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/internal/process/processtest"
	"linktrial/protocols/contract"
)

// folder makes a driver's folder whose program is this test program with a fault.
func folder(t *testing.T, fault string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "faulty")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %q\n", faultVariable, fault, self)
	for name, text := range map[string]string{"driver.yaml": manifestOf(fault), "driver": script} {
		processtest.WriteExecutable(t, filepath.Join(dir, name), []byte(text))
	}
	return dir
}

// target is the driver in a folder, which reads this test program.
func target(dir string) Target {
	self, _ := os.Executable()
	return Target{Dir: dir, Reads: []string{filepath.Dir(self)}}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
}

var testOptions = Options{Quick: true, Cut: time.Second, Patience: 4 * time.Second}

// TestSoundDriver: a driver without a fault passes every check.
func TestSoundDriver(t *testing.T) {
	needRoot(t)
	t.Parallel()
	var order []string
	o := testOptions
	o.Patience = 20 * time.Second
	o.Progress = func(c Check) { order = append(order, c.Name) }
	r, err := Run(t.Context(), target(folder(t, "none")), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.Outcome != Passed {
			t.Errorf("%s %s: %s", c.Name, c.Outcome, c.Detail)
		}
	}
	if !r.Passed() || r.Driver != "faulty" || r.Network != "namespaces" {
		t.Errorf("report %+v", r)
	}
	if !slices.Equal(order, ofTransfers()) {
		t.Errorf("progress came for %v", order)
	}
}

// TestSoundProbes: a driver of probes without a fault passes every check.
func TestSoundProbes(t *testing.T) {
	needRoot(t)
	t.Parallel()
	o := testOptions
	o.Patience = 20 * time.Second
	r, err := Run(t.Context(), target(folder(t, ofProbe+"none")), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.Outcome != Passed {
			t.Errorf("%s %s: %s", c.Name, c.Outcome, c.Detail)
		}
	}
	if !r.Passed() || len(r.Checks) != len(Selected(&contract.Manifest{Kind: contract.KindProbe}, nil)) {
		t.Errorf("report %+v", r)
	}
}

// ofTransfers names the checks of a driver that carries transfers, in every role.
func ofTransfers() []string {
	return slices.DeleteFunc(Names(), ofProbes)
}

func ofProbes(name string) bool {
	return slices.ContainsFunc(probeChecks, func(c check) bool { return c.name == name })
}

// sabotage is a fault, the check that it fails, and a part of what that says.
type sabotage struct{ fault, check, detail string }

// says reports whether a text has one of the alternatives, which a bar separates.
func says(text, alternatives string) bool {
	return slices.ContainsFunc(strings.Split(alternatives, "|"), func(a string) bool { return strings.Contains(text, a) })
}

// TestEveryCheckCanFail runs drivers with one fault each.
func TestEveryCheckCanFail(t *testing.T) {
	needRoot(t)
	t.Parallel()
	cases := []sabotage{
		{"silent-query", "query", "without a ready event"},
		{"unexplained-127", "query", "without an error event that says why"},
		{"any-version", "bad-parameters", "another version"},
		{"panics", "bad-parameters", "no error event"},
		{"any-role", "bad-parameters", "an unknown role"},
		{"any-option", "unknown-option", "an undeclared option"},
		{"any-flavour", "unsupported", "option flavour"},
		{"shares-port", "port-taken", "has not ended"},
		{"slow-clock", "size-1", "the whole process took"},
		{"aware-of-parent", "size-1", "the whole process took"},
		{"aware-of-descent", "size-1", "the whole process took"},
		{"aware-of-processes", "size-1", "the whole process took"},
		{"aware-of-home", "size-1", "the whole process took"},
		{"aware-of-privileges", "size-1", "the whole process took"},
		{"aware-of-sizes", "size-1KiB", "the whole process took"},
		{"aware-of-sizes", "size-1MiB", "the whole process took"},
		{"aware-of-counters", "size-1", "the whole process took"},
		{"no-final", "size-1KiB", "no final sample"},
		{"no-result-of-server", "size-1MiB", "the server gave no result"},
		{"wrong-size", "size-0", "result"},
		{"wrong-size", "size-64MiB", "result says"},
		{"makes-up", "size-1KiB", "that of the client's standard input"},
		{"leaves-out-end", "size-64MiB", "that of the client's standard input"},
		{"hands-over-less", "size-1MiB", "of payload before its result, expected "},
		{"no-duration", "duration", "bounded by 500 ms: the client ended"},
		{"short-duration", "duration", "was over after"},
		{"counts-lengths", "duration", "the server's result says"},
		{"any-duration", "duration-refused", "expected bad-parameters"},
		{"no-samples", "samples", "no sample in"},
		{"final-sample-kept", "samples", "not the last sample event"},
		{"samples-go-back", "samples", "goes back"},
		{"transmits-half", "samples", "bytes acknowledged in sample"},
		{"transmits-all-again", "samples", "retransmitted_bytes is"},
		{"too-many-samples", "samples", "at an interval of 2ms"},
		{"no-interval-samples", "sample-share", "client: 0 samples before the final one"},
		{"no-interval-samples-server", "sample-share", "server: 0 samples before the final one"},
		{"fifth-of-samples", "sample-share", "or half of them on a busy machine"},
		{"fifth-of-samples-server", "sample-share", "or half of them on a busy machine"},
		{"never-doubles", "sample-interval", "an interval of 2ms"},
		{"never-doubles-server", "sample-interval", "server: "},
		{"doubles-once", "sample-interval", "an interval of 2ms"},
		{"doubles-at-100", "sample-interval", "doubles after 500 samples, not before"},
		{"counts-since-sample", "sample-interval", "retransmits goes back"},
		{"counts-half-client", "sample-counts", "client: sent_bytes is"},
		{"counts-half-server", "sample-counts", "server: sent_bytes is"},
		{"acknowledges-half-client", "sample-counts", "client: acked_bytes is"},
		{"connect-of-1ms", "connect-time", "connect_ns is 1.0 ms"},
		{"connect-of-an-hour", "connect-time", "took"},
		// Which of the two it meets first depends on how long the process takes to end.
		{"clock-from-connect", "connect-time", "for the transfer, but the whole process took|before, the link held the client's first packet back"},
		{"clock-30ms-more-client", "connect-time", "client: elapsed_ns is"},
		{"clock-30ms-more-server", "connect-time", "server: elapsed_ns is"},
		{"clock-times-0.8", "clock", "client: elapsed_ns is"},
		{"clock-times-0.95", "clock", "client: elapsed_ns is"},
		{"clock-times-0.95-server", "clock", "server: elapsed_ns is"},
		{"clock-times-1.05", "clock", "took"},
		{"clock-50ms-more-server", "clock", "took"},
		{"clock-50ms-less-server", "clock", "server: elapsed_ns is"},
		{"slow-samples-client", "clock", "client: a sample says that it was taken at"},
		{"slow-samples-server", "clock", "server: a sample says that it was taken at"},
		{"standing-samples", "clock", "client: every sample line"},
		{"clock-times-0.8", "clock-duration", "client: elapsed_ns is"},
		{"clock-times-0.95", "clock-duration", "client: elapsed_ns is"},
		{"clock-ends-at-ack", "clock-end", "until which the server's process was stopped"},
		{"tires", "hundred", "transfer 1"},
		{"serial", "concurrent", "of 4 at once"},
		{"connects-for-ever", "late-server", "has not ended within"},
		{"dies-with-client", "client-killed", "exit code 1"},
		{"wrong-code", "server-killed", "the client said internal"},
		{"endless-transfer", "transfer-limit", "has not ended within"},
		{"connects-for-ever", "connect-limit", "has not ended within"},
		{"unmarked-client", "dscp", "the client sent"},
		{"unmarked-server", "dscp", "the server sent"},
		{"fast-clock", "link-cut", "through an outage of"},
		{"buffers-lines", "stop-client", "gave no connected event"},
		{"ignores-sigterm", "stop-client", "has not ended within"},
		{"ignores-sigterm", "stop-server", "has not ended within"},
		{"aborts-silently", "stop-server", "no error event for it"},
		{"busy", "idle-server", "takes"},
		{"garbage", "output", `"starting up ..."`},
		{"long-line", "output", "event line longer than 65536 bytes"},
		{"no-newline", "output", "no newline"},
		{"exit-3", "exit-codes", "exit code 3"},
		{"leaves-child", "children", "process group"},
		{"leaves-daemon", "children", "still runs"},
	}
	cases = slices.Concat(cases, linkFaults, relayFaults, probeFaults)
	covered := map[string]bool{"manifest": true} // TestManifest
	for _, c := range cases {
		covered[c.check] = true
		t.Run(c.check+"/"+c.fault, func(t *testing.T) {
			t.Parallel()
			o := testOptions
			o.Only = []string{c.check}
			// These look at what the processes of other checks did.
			if slices.Contains([]string{"output", "exit-codes", "children"}, c.check) {
				o.Only = append(o.Only, "size-1", "relay-prompt")
				if isOfProbe(c.fault) {
					o.Only = []string{c.check, "probe-alone"}
				}
			}
			dir := folder(t, c.fault)
			var r *Report
			var x Check
			// A driver that a busy machine holds up may fail for that instead, or not at all.
			for try := range 5 {
				time.Sleep(time.Duration(try) * 500 * time.Millisecond)
				var err error
				if r, err = Run(t.Context(), target(dir), o); err != nil {
					t.Fatal(err)
				}
				x = r.Checks[slices.IndexFunc(r.Checks, func(x Check) bool { return x.Name == c.check })]
				if x.Outcome == Failed && says(x.Detail, c.detail) {
					break
				}
			}
			t.Logf("%s: %s", x.Outcome, x.Detail)
			if x.Outcome != Failed || !says(x.Detail, c.detail) {
				t.Errorf("%s: %q, expected a failure with %q", x.Outcome, x.Detail, c.detail)
			}
			if r.Passed() {
				t.Error("the report says passed")
			}
		})
	}
	for _, name := range Names() {
		if !covered[name] {
			t.Errorf("no faulty driver for the check %s", name)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ yaml, detail string }{
		"none":        {"", "no such file"},
		"not one":     {"name: [", "driver.yaml:1"},
		"no program":  {strings.Replace(faultyManifest, "./driver", "./absent", 1), "command"},
		"other name":  {strings.Replace(faultyManifest, "name: faulty", "name: other", 1), "its folder is called faulty"},
		"not listed":  {strings.Replace(faultyManifest, "command: [./driver]", "command: [sh, driver]\nfiles: [driver.yaml]", 1), "names the file driver"},
		"list":        {faultyManifest + "files: [driver, lib]\n", "names lib, which is not in"},
		"bad default": {strings.Replace(faultyManifest, "min: 1,", "min: 1, default: 11,", 1), "1 to 10"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, "none")
			file := filepath.Join(dir, "driver.yaml")
			if c.yaml == "" {
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(file, []byte(c.yaml), 0o644); err != nil {
				t.Fatal(err)
			}
			r, err := Run(t.Context(), target(dir), testOptions)
			if err != nil {
				t.Fatal(err)
			}
			if x := r.Checks[0]; x.Outcome != Failed || !strings.Contains(x.Detail, c.detail) {
				t.Errorf("%s: %q, expected a failure with %q", x.Outcome, x.Detail, c.detail)
			}
			for _, x := range r.Checks[1:] {
				if x.Outcome != Skipped || x.Detail == "" {
					t.Errorf("%s after a bad manifest: %s %q", x.Name, x.Outcome, x.Detail)
				}
			}
		})
	}
}

func checkNamed(name string) *check {
	return &checks[slices.IndexFunc(checks, func(c check) bool { return c.name == name })]
}

// needCut are the checks that the loopback interface is no place for.
var needCut = []string{
	"connect-limit", "link-cut", "no-route", "dscp", "header-limit", "silent-peer", "long-outage", "answer-kept", "broken-off", "lossy-link",
	"relay-connect-limit", "relay-outage",
	"sample-share", "sample-interval", "sample-counts", "clock", "clock-duration", "clock-end", "connect-time",
}

// TestLoopback: without namespaces all checks pass but those that need a link
// that can be cut or held.
func TestLoopback(t *testing.T) {
	t.Parallel()
	o := testOptions
	o.Loopback, o.Patience = true, 20*time.Second
	r, err := Run(t.Context(), target(folder(t, "none")), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		want := Passed
		if slices.Contains(needCut, c.Name) {
			want = Skipped
		}
		if c.Outcome != want {
			t.Errorf("%s %s (%s), expected %s", c.Name, c.Outcome, c.Detail, want)
		}
	}
	if !r.Passed() || r.Network != "loopback" {
		t.Errorf("report %+v", r)
	}
}

// TestUnsupported: a driver that cannot run here is neither passed nor failed.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	o := testOptions
	o.Loopback = true
	r, err := Run(t.Context(), target(folder(t, "unsupported")), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		want := Skipped
		if checkNamed(c.Name).here() && c.Name != "query" {
			want = Passed
		}
		if c.Outcome != want {
			t.Errorf("%s %s (%s), expected %s", c.Name, c.Outcome, c.Detail, want)
		}
	}
	if r.Passed() || r.Unsupported != "this kernel is too old" {
		t.Errorf("report %+v", r)
	}
}

// TestDefaultNotHere: a default that the node does not have is replaced by what it has.
func TestDefaultNotHere(t *testing.T) {
	t.Parallel()
	o := testOptions
	o.Loopback, o.Only = true, []string{"size-1"}
	r, err := Run(t.Context(), target(folder(t, "other-flavour")), o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Passed() || !strings.Contains(r.Checks[1].Detail, "the checks use flavour other") {
		t.Errorf("report %+v", r)
	}
}

func TestRunRefusesUnknownCheck(t *testing.T) {
	_, err := Run(t.Context(), Target{}, Options{Only: []string{"size-3"}})
	if err == nil || !strings.Contains(err.Error(), "size-1MiB") {
		t.Errorf("error %v, expected one that lists the checks", err)
	}
}

// TestRunEndsWithContext: an ended context ends the driver's processes too.
func TestRunEndsWithContext(t *testing.T) {
	needRoot(t)
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := testOptions
	o.Progress = func(c Check) {
		if c.Name == "size-0" {
			cancel()
		}
	}
	r, err := Run(ctx, target(folder(t, "none")), o)
	if err == nil {
		t.Fatal("no error")
	}
	if n := len(r.Checks); n == 0 || r.Checks[n-1].Name != "size-0" {
		t.Errorf("the report ends with %+v", r.Checks)
	}
}

// TestSelected: the checks that always run are counted once, named or not.
func TestSelected(t *testing.T) {
	m := &contract.Manifest{}
	for _, only := range [][]string{{"size-1"}, {"size-1", "query"}, {"size-1", "size-1", "manifest"}} {
		if got := Selected(m, only); !slices.Equal(got, []string{"manifest", "query", "size-1"}) {
			t.Errorf("only %q: %q", only, got)
		}
	}
	if got := Selected(m, nil); !slices.Contains(got, "size-1") || slices.Contains(got, "relay-bytes") {
		t.Errorf("client and server: %q", got)
	}
	m.Roles = []contract.Role{contract.RoleRelay}
	if got := Selected(m, nil); slices.Contains(got, "size-1") || !slices.Contains(got, "relay-bytes") || !slices.Contains(got, "output") {
		t.Errorf("relay: %q", got)
	}
	m.Roles = []contract.Role{contract.RoleClient, contract.RoleServer, contract.RoleRelay}
	if got := Selected(m, nil); !slices.Equal(got, ofTransfers()) {
		t.Errorf("all roles: %q", got)
	}
	m = &contract.Manifest{Kind: contract.KindProbe}
	if got := Selected(m, nil); !slices.ContainsFunc(got, ofProbes) || slices.Contains(got, "size-1") || slices.Contains(got, "relay-bytes") {
		t.Errorf("probes: %q", got)
	}
}
