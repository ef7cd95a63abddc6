// Command testgate reads the output of one or more runs of go test -json, prints
// what failed, what was skipped with its reason, and what took longest, and fails
// unless every skipped test is expected: a test that skips in silence is a test
// that does not exist.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"time"
)

type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

func main() {
	expected := flag.String("expected", "", "file with a line for each test that may skip: package/Test")
	flag.Parse()
	allowed, err := readExpected(*expected)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testgate:", err)
		os.Exit(2)
	}
	os.Exit(run(os.Stdin, os.Stdout, allowed))
}

func readExpected(path string) (map[string]bool, error) {
	out := map[string]bool{}
	if path == "" {
		return out, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(b), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out[line] = true
		}
	}
	return out, nil
}

// timing is how long a package or one of its top-level tests took.
type timing struct {
	name    string
	seconds float64
}

const slowestShown = 10

// printSlowest prints the slowest of what was timed, so that a gate that grows slow shows where.
func printSlowest(out io.Writer, what string, timed []timing) {
	slices.SortFunc(timed, func(a, b timing) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(a.name, b.name))
	})
	for i, t := range timed {
		if i == slowestShown || t.seconds < 1 {
			break
		}
		fmt.Fprintf(out, "slow  %-8s %6.1f s  %s\n", what, t.seconds, t.name)
	}
}

func run(events io.Reader, out io.Writer, allowed map[string]bool) int {
	began := time.Now()
	var packages, tests []timing
	output := map[string]*strings.Builder{}
	var failed, skipped []string
	passed, buildFailed := 0, false
	in := bufio.NewScanner(events)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Fprintln(out, in.Text()) // go vet and the linker write plain text
			continue
		}
		key := e.Package
		if e.Test != "" {
			key += "/" + e.Test
		}
		switch e.Action {
		case "output":
			if output[key] == nil {
				output[key] = &strings.Builder{}
			}
			output[key].WriteString(e.Output)
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "build-fail":
			buildFailed = true
		case "pass":
			if e.Test == "" {
				fmt.Fprintf(out, "ok    %-48s %6.1f s\n", e.Package, e.Elapsed)
				packages = append(packages, timing{key, e.Elapsed})
			} else {
				passed++
				if !strings.Contains(e.Test, "/") {
					tests = append(tests, timing{key, e.Elapsed})
				}
			}
			delete(output, key)
		case "skip":
			if e.Test != "" {
				skipped = append(skipped, key)
			}
		case "fail":
			if e.Test == "" {
				fmt.Fprintf(out, "FAIL  %-48s %6.1f s\n", e.Package, e.Elapsed)
			}
			failed = append(failed, key)
			if b := output[key]; b != nil {
				fmt.Fprint(out, b.String())
			}
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "testgate: read test output:", err)
		return 2
	}
	bad := len(failed) > 0 || buildFailed
	sort.Strings(skipped)
	for _, s := range skipped {
		mark := "expected"
		if !allowed[s] {
			mark, bad = "NOT EXPECTED (tools/testgate/expected-skips.txt)", true
		}
		reason := ""
		if b := output[s]; b != nil {
			reason = skipReason(b.String())
		}
		fmt.Fprintf(out, "skip  %s: %s: %s\n", s, mark, reason)
	}
	printSlowest(out, "package", packages)
	printSlowest(out, "test", tests)
	if passed == 0 {
		fmt.Fprintln(out, "no test was executed")
		bad = true
	}
	fmt.Fprintf(out, "took %s\n%d passed, %d failed, %d skipped\n", time.Since(began).Round(time.Second), passed, len(failed), len(skipped))
	if bad {
		return 1
	}
	return 0
}

func skipReason(output string) string {
	for _, line := range strings.Split(output, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}
