package protocoltest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"linktrial/internal/driverfolder"
	"linktrial/internal/inputfile"
	"linktrial/internal/yamldoc"
	"linktrial/protocols/contract"
)

// Target is the driver under test.
type Target struct {
	// Manifest is what Dir/driver.yaml says; nil: Run reads it itself, and one
	// that cannot be read fails the check "manifest".
	Manifest *contract.Manifest
	// Dir is the folder that the manifest's command is relative to.
	Dir string
	// Root is a root file system that the driver runs in, as the given user; Dir
	// is then a folder in it, as the driver sees it. Empty: this process's own.
	Root     string
	UID, GID uint32
	// Reads are files and folders that the driver reads beyond its own and the system's, as
	// an agent's --driver-reads.
	Reads []string
}

// Options are the extent and the timeouts of the suite. Zero is the full suite.
type Options struct {
	// Quick takes smaller transfers and a shorter cut of the link.
	Quick bool
	// Cut is how long the link is cut; 0: 30 s, in quick mode 2 s.
	Cut time.Duration
	// Patience is how long a driver may take beyond what the contract bounds
	// before it counts as hung; 0: as long as Linktrial itself waits
	// ([contract.LimitPatience] and the others). It must be longer than the
	// delays of a slow machine.
	Patience time.Duration
	// Only names the checks to run; empty: all.
	Only []string
	// Values are the driver's options in every check, as the driver sees them;
	// where absent the manifest's defaults hold, or what the query lists first
	// where it does not list the default.
	Values map[string]any
	// Loopback runs everything on the loopback interface, also as root; what
	// needs a cut of the link is skipped.
	Loopback bool
	// Progress is called after every check, in order; it can be nil.
	Progress func(Check)

	waits waits
}

// Outcome of one check.
type Outcome string

// A check passes or fails; or it is skipped, and Detail says why.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Check is what came of one check.
type Check struct {
	Name    string        `json:"name"`
	About   string        `json:"about"`           // what the contract promises
	Holds   []string      `json:"holds,omitempty"` // sentences of docs/driver-contract.md, by their numbers
	Outcome Outcome       `json:"outcome"`
	Detail  string        `json:"detail,omitempty"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Report is what came of the suite.
type Report struct {
	Driver  string  `json:"driver"`
	Version string  `json:"version"`
	Network string  `json:"network"` // where it ran: "namespaces" or "loopback"
	Checks  []Check `json:"checks"`
	// Unsupported is the driver's reason for not running on this node: most checks were skipped.
	Unsupported string `json:"unsupported,omitempty"`
}

// Passed reports whether no check failed and the driver could run at all.
func (r *Report) Passed() bool {
	return r.Unsupported == "" && !slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Outcome == Failed })
}

// check is one row of the suite's table. Its function returns what is worth
// telling of a success, and an error that says which promise was broken.
type check struct {
	name  string
	about string
	run   func(ctx context.Context, s *suite) (string, error)
	place place
	holds []string // sentences of docs/driver-contract.md, by their numbers
}

// place says where and when a check runs.
type place int

const (
	// usual: one after the other, in the suite's network, if the driver can run on this node.
	usual place = iota
	// first: whatever checks were asked for, and no other can run where it fails.
	first
	// anywhere: also of a driver that cannot run on this node.
	anywhere
	// apart: in a network of its own, with a link, several such checks at once beside the
	// usual ones: most of their time is waiting.
	apart
)

// here reports whether the check holds also of a driver that cannot run on this node.
func (c *check) here() bool { return c.place == first || c.place == anywhere }

// skipped is the error of a check that cannot run here.
type skipped struct{ reason string }

func (e *skipped) Error() string { return e.reason }

func skip(format string, args ...any) error { return &skipped{fmt.Sprintf(format, args...)} }

// Names lists the checks of all roles in the order they run.
func Names() []string {
	out := make([]string, len(checks))
	for i, c := range checks {
		out[i] = c.name
	}
	return out
}

// Selected lists the checks of a driver that run where Only names some, in their
// order: these, and the first two, without which no other can run. Empty: all
// that its roles have.
func Selected(m *contract.Manifest, only []string) []string {
	var out []string
	for _, c := range selected(m, only) {
		out = append(out, c.name)
	}
	return out
}

func selected(m *contract.Manifest, only []string) []*check {
	var out []*check
	for i := range checks {
		c := &checks[i]
		if !c.of(m) {
			continue
		}
		if len(only) == 0 || c.place == first || slices.Contains(only, c.name) {
			out = append(out, c)
		}
	}
	return out
}

// Load reads the manifest of the driver in a folder.
func Load(dir string) (Target, error) {
	m, err := readManifest(dir)
	return Target{Manifest: m, Dir: dir}, err
}

func readManifest(dir string) (*contract.Manifest, error) {
	file := filepath.Join(dir, driverfolder.Manifest)
	b, err := inputfile.Read(file, yamldoc.MaxText)
	if err != nil {
		return nil, fmt.Errorf("driver manifest: %w", err)
	}
	return contract.ParseManifest(file, b)
}

// suite is one run of all checks.
type suite struct {
	target  Target
	o       Options
	net     *network
	ends    *ends
	limits  contract.Limits
	command []string

	unsupported string         // the driver's reason, once the query has run
	instead     map[string]any // values for defaults that this node does not have
	procs       []*proc        // of the check that runs
	output      []string       // breaches of the rules of output, of all processes
	exits       []string       // breaches of the rules of exit codes
	children    []string       // processes left behind
	transfers   uint64
	secret      []byte // of payloads
}

// Run runs the suite. The error is of the suite itself (no such check, no
// namespaces, ctx ended); what is wrong with the driver is in the report.
func Run(ctx context.Context, t Target, o Options) (*Report, error) {
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("no check %q; there are %s", name, strings.Join(Names(), ", "))
		}
	}
	o.fill()
	m := t.Manifest
	if m == nil {
		// What cannot be read has no roles; the first check says why.
		if m, _ = readManifest(t.Dir); m == nil {
			m = &contract.Manifest{}
		}
	}
	for _, name := range o.Only {
		if !slices.Contains(Selected(m, nil), name) {
			return nil, fmt.Errorf("the check %s is of a role or a kind of drivers that %s is not; its roles are %v, it carries %ss", name, m.Name, m.AllRoles(), m.Kind)
		}
	}
	net, err := newNetwork(drawAddresses(), o.Loopback)
	if err != nil {
		return nil, err
	}
	defer net.close()
	s := &suite{target: t, o: o, net: net, ends: &ends{at: net.at}, limits: drawLimits(), secret: make([]byte, 16)}
	defer s.ends.close()
	_, _ = rand.Read(s.secret) // it never fails
	r := &Report{Network: net.kind()}
	chosen := selected(m, o.Only)
	broken := ""
	var beside *group // once the first checks have passed or failed
	for _, c := range chosen {
		if c.place != first && beside == nil {
			// What ends early ends them.
			ctx, cancel := context.WithCancel(ctx)
			beside = s.beginApart(ctx, slices.DeleteFunc(slices.Clone(chosen), func(c *check) bool { return c.place != apart }), broken)
			defer beside.all.Wait()
			defer cancel()
		}
		res, err := s.result(ctx, c, beside, broken)
		if err != nil {
			return r, err
		}
		if res.Outcome == Failed && c.place == first {
			broken = "the check " + c.name + " failed"
		}
		r.Checks = append(r.Checks, res)
		if s.o.Progress != nil {
			s.o.Progress(res)
		}
	}
	if m := s.target.Manifest; m != nil {
		r.Driver, r.Version = m.Name, m.Version
	}
	r.Unsupported = s.unsupported
	return r, nil
}

// result runs a check, or waits for one that runs beside it.
func (s *suite) result(ctx context.Context, c *check, beside *group, broken string) (Check, error) {
	if c.place == apart {
		return beside.result()
	}
	begin := time.Now()
	res, err := s.check(ctx, c, broken)
	res.Elapsed = time.Since(begin)
	return res, err
}

// fill sets the options that were left out.
func (o *Options) fill() {
	if o.Cut == 0 {
		o.Cut = 30 * time.Second
		if o.Quick {
			o.Cut = 2 * time.Second
		}
	}
	if o.waits = waitsOf(o.Patience); o.Patience == 0 {
		o.Patience = contract.LimitPatience
	}
}

// waits are how long the suite waits for a driver beyond what the contract bounds.
type waits struct{ query, ready, limit, exit, stop time.Duration }

// waitsOf are Linktrial's own, or all of them a given one.
func waitsOf(given time.Duration) waits {
	if given > 0 {
		return waits{given, given, given, given, given}
	}
	return waits{contract.QueryPatience, contract.ReadyPatience, contract.LimitPatience, contract.ExitPatience, contract.StopPatience}
}

// check runs one check, or skips it: where broken says why, or where the driver
// cannot run on this node. The error is ctx's end.
func (s *suite) check(ctx context.Context, c *check, broken string) (Check, error) {
	res := Check{Name: c.name, About: c.about, Holds: c.holds, Outcome: Passed}
	switch {
	case broken != "":
		res.Outcome, res.Detail = Skipped, broken
		return res, nil
	case s.unsupported != "" && !c.here():
		res.Outcome, res.Detail = Skipped, "the driver cannot run here: "+s.unsupported
		return res, nil
	}
	var err error
	res.Detail, err = c.run(ctx, s)
	s.cleanup()
	if ctx.Err() != nil {
		return res, fmt.Errorf("conformance suite: %w", ctx.Err())
	}
	var sk *skipped
	if errors.As(err, &sk) {
		res.Outcome, res.Detail = Skipped, sk.reason
	} else if err != nil {
		res.Outcome, res.Detail = Failed, err.Error()
	}
	return res, nil
}

// TB is the part of [testing.TB] that Exercise needs.
type TB interface {
	Helper()
	Context() context.Context
	TempDir() string
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// ExerciseGo builds the driver whose package the test is in, as an installation
// has it (without cgo, in a folder of its name with its manifest), and runs the
// quick suite against it; values are the driver's options, nil for none.
func ExerciseGo(t TB, name string, manifest []byte, values map[string]any) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the driver: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "driver.yaml"), manifest, 0o644); err != nil {
		t.Fatalf("%v", err)
	}
	exercise(t, dir, values, nil)
}

// Exercise runs the quick suite from a Go test against the driver in dir, which reads the
// given files and folders beyond those that every driver reads.
func Exercise(t TB, dir string, reads ...string) {
	t.Helper()
	exercise(t, dir, nil, reads)
}

func exercise(t TB, dir string, values map[string]any, reads []string) {
	t.Helper()
	target, err := Load(dir)
	if err != nil {
		t.Fatalf("%v", err)
	}
	target.Reads = reads
	r, err := Run(t.Context(), target, Options{Quick: true, Values: values, Progress: func(c Check) {
		t.Logf("%-8s %-18s %6.2f s  %s", c.Outcome, c.Name, c.Elapsed.Seconds(), c.Detail)
		if c.Outcome == Failed {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	if r.Unsupported != "" {
		t.Errorf("driver %s cannot run here: %s", r.Driver, r.Unsupported)
	}
}
