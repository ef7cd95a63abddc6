package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"linktrial/internal/testkind"
)

// event is a line of go test -json.
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// failure is a test that failed, or a package that failed as a whole: that was not
// built, crashed or was ended.
type failure struct {
	pkg     string
	test    string // with its subtest, or nothing
	seconds float64
	load    string // the pressure of the processor meanwhile
	output  string
	again   []attempt
}

// attempt is a test that had failed, run again alone.
type attempt struct {
	passed  bool
	seconds float64
	load    string
}

func (f failure) name() string {
	if f.test == "" {
		return f.pkg
	}
	return f.pkg + "/" + f.test
}

// top is the test that a failed subtest belongs to.
func (f failure) top() string {
	top, _, _ := strings.Cut(f.test, "/")
	return top
}

// timing is how long something took.
type timing struct {
	name    string
	seconds float64
}

// results are those of all tests so far. Several streams of events may be added at once.
type results struct {
	mu       sync.Mutex
	out      io.Writer
	passed   int
	failures []failure
	skipped  map[string]string // package/Test and the reason
	packages []timing
	tests    []timing
	parts    []timing // of the gate
	running  map[testOf]time.Time
}

func newResults(out io.Writer) *results {
	return &results{out: out, skipped: map[string]string{}, running: map[testOf]time.Time{}}
}

// printf prints a line of progress.
func (r *results) printf(format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, a...)
}

// part notes how long a part of the gate took.
func (r *results) part(name string, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.parts = append(r.parts, timing{name, time.Since(began).Seconds()})
}

// failed reports whether something of a package has failed.
func (r *results) failed(pkg string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.failures {
		if f.pkg == pkg {
			return true
		}
	}
	return false
}

func (r *results) addFailure(f failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, f)
}

// read adds what one process printed as events. What is not an event is printed:
// the linker and the race detector's runtime write plain text.
func (r *results) read(events io.Reader) error {
	s := stream{results: r, output: map[string]*strings.Builder{}, failed: map[string]bool{}, began: map[string]time.Time{}}
	in := bufio.NewScanner(events)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil || e.Action == "" {
			r.printf("%s\n", in.Text())
			continue
		}
		r.mu.Lock()
		r.note(e)
		s.add(e)
		r.mu.Unlock()
	}
	return in.Err()
}

// stream is what of one process's events is not complete yet.
type stream struct {
	*results
	output map[string]*strings.Builder
	failed map[string]bool // packages with a failed test
	began  map[string]time.Time
}

// seconds is how long a test took. What Go reports for one leaves out its subtests that run
// in parallel; of a test that waits for its turn only the time after the wait counts.
func (s *stream) seconds(e event, key string) float64 {
	began := s.began[key]
	delete(s.began, key)
	if began.IsZero() {
		return e.Elapsed
	}
	return max(e.Elapsed, e.Time.Sub(began).Seconds())
}

func (s *stream) add(e event) {
	key := e.Package
	if e.Test != "" {
		key += "/" + e.Test
	}
	switch e.Action {
	case "run", "cont":
		s.began[key] = e.Time
	case "output":
		if s.output[key] == nil {
			s.output[key] = &strings.Builder{}
		}
		s.output[key].WriteString(e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "pass":
		s.pass(e, key)
	case "skip":
		if e.Test != "" {
			s.skipped[key] = reason(s.take(key))
		}
	case "fail":
		s.fail(e, key)
	}
}

func (s *stream) pass(e event, key string) {
	if e.Test == "" {
		fmt.Fprintf(s.out, "ok    %-48s %6.1f s\n", e.Package, e.Elapsed)
		s.packages = append(s.packages, timing{key, e.Elapsed})
	} else {
		s.passed++
		if !strings.Contains(e.Test, "/") {
			s.tests = append(s.tests, timing{key, s.seconds(e, key)})
		}
	}
	delete(s.output, key)
}

func (s *stream) fail(e event, key string) {
	output := s.take(key)
	if e.Test == "" && !s.failed[e.Package] {
		output += s.unfinished(e.Package)
	}
	fmt.Fprint(s.out, output)
	if e.Test == "" {
		fmt.Fprintf(s.out, "FAIL  %-48s %6.1f s\n", e.Package, e.Elapsed)
		if s.failed[e.Package] {
			return // its tests are noted already
		}
	}
	s.failed[e.Package] = true
	s.failures = append(s.failures, failure{pkg: e.Package, test: e.Test, seconds: s.seconds(e, key), output: output})
}

// unfinished is what the tests had printed that a crash or their limit has ended, which
// have no result of their own.
func (s *stream) unfinished(pkg string) string {
	var names []string
	for key := range s.output {
		if strings.HasPrefix(key, pkg+"/Test") {
			names = append(names, key)
		}
	}
	slices.Sort(names)
	var out strings.Builder
	for _, key := range names {
		fmt.Fprintf(&out, "not finished: %s\n%s", key, s.take(key))
	}
	return out.String()
}

func (s *stream) take(key string) string {
	b := s.output[key]
	delete(s.output, key)
	if b == nil {
		return ""
	}
	return b.String()
}

// reason is the first line of a test's own output.
func reason(output string) string {
	for _, line := range strings.Split(output, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}

// final are failures that trying again would hide.
var final = regexp.MustCompile(`(?m)WARNING: DATA RACE|race detected during execution|^panic: |^fatal error: |(?:Address|Thread|Leak|UndefinedBehavior)Sanitizer|runtime error: |^SIG[A-Z]+: |signal: (?:segmentation fault|aborted|bus error|illegal instruction|floating point exception|bad system call)|(?:^|\s)FINDING |` + regexp.QuoteMeta(testkind.Decided))
