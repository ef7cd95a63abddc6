package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// unit is what is run at once in real time: tests of one package as one process, or a
// file of tests in a browser.
type unit struct {
	pkg     string
	dir     string
	command []string
	env     []string
	page    bool          // prints no events: its results are in a file
	waits   bool          // for nearly all of its time
	limit   time.Duration // then it is ended
	label   string
}

const (
	// packageLimit ends the tests of a package that hang.
	packageLimit = 20 * time.Minute
	// testLimit ends a test that runs by itself.
	testLimit = 12 * time.Minute
	// exactLimit ends the exact tests of a package. Those of the virtual-time lab compute
	// for minutes.
	exactLimit = 20 * time.Minute
)

// apart are the packages whose tests run in real time as processes of their own, the
// longest of all: two of their tests may run at once.
var apart = map[string]bool{"e2e": true}

// longest are the packages whose units take longest and compute: one of them begun last
// would be waited for alone.
var longest = []string{"orchestrator/server", "playbooks", "protocols/protocoltest"}

// unitsOf are the units of the tests of a kind, the longest first; binary is the built test
// program of a package.
func unitsOf(all []goPackage, of kind, binary func(goPackage) string) []unit {
	var out []unit
	for _, p := range all {
		tests := p.Tests.of(of)
		switch {
		case len(tests) == 0:
		case apart[p.name()]:
			for _, name := range tests {
				u := testUnit(p, binary(p), testLimit, "-test.run="+exactly(name))
				u.waits = u.waits || p.Tests.waits[name]
				out = append(out, u)
			}
		case p.Tests.kind == of: // and what is no function of its own: examples, seeds of fuzz targets
			var others []string
			for _, k := range []kind{exact, realTime, soak} {
				if k != of {
					others = append(others, p.Tests.of(k)...)
				}
			}
			if len(others) > 0 {
				out = append(out, testUnit(p, binary(p), packageLimit, "-test.skip="+exactly(others...)))
			} else {
				out = append(out, testUnit(p, binary(p), packageLimit))
			}
		default:
			out = append(out, testUnit(p, binary(p), packageLimit, "-test.run="+exactly(tests...)))
		}
	}
	slices.SortStableFunc(out, func(a, b unit) int { return rank(a) - rank(b) })
	return out
}

// rank is where a unit stands among the longest; the others share the last place.
func rank(u unit) int {
	i := slices.IndexFunc(longest, func(name string) bool { return strings.HasSuffix(u.pkg, "/"+name) })
	if i < 0 {
		return len(longest)
	}
	return i
}

func testUnit(p goPackage, binary string, limit time.Duration, selection ...string) unit {
	command := []string{"go", "tool", "test2json", "-t", "-p", p.ImportPath, binary,
		"-test.v=test2json", "-test.paniconexit0", "-test.count=1", "-test.timeout=" + limit.String()}
	label := p.name()
	if len(selection) > 0 && strings.HasPrefix(selection[0], "-test.run=") {
		label += " " + strings.NewReplacer("-test.run=", "", "^(", "", ")$", "", "|", ", ").Replace(selection[0])
	}
	return unit{pkg: p.ImportPath, dir: p.Dir, command: append(command, selection...), limit: limit, label: label, waits: p.Tests.waits[""]}
}

// ownNetwork begins a command in a network of its own, a loopback alone. A browser gives up
// what it loads when any address of its network changes (ERR_NETWORK_CHANGED), and the
// labs of tests beside it add and remove addresses.
var ownNetwork = []string{"unshare", "--net", "--", "sh", "-ec",
	`ip link set lo up; sysctl -qw net.ipv4.ip_forward=0; exec "$@"`, "sh"}

// pageUnits are the files of tests in a browser below web/tests.
func pageUnits(web string) ([]unit, error) {
	files, err := filepath.Glob(filepath.Join(web, "tests", "*.test.ts"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no tests of the pages in %s: %w", web, err)
	}
	var out []unit
	for _, f := range files {
		name := filepath.Base(f)
		out = append(out, unit{
			pkg: "web/tests/" + name, dir: web, page: true, limit: packageLimit, label: "web " + name,
			command: append(slices.Clone(ownNetwork), "npx", "vitest", "run", "--config", "vitest.browser.config.ts", filepath.Join("tests", name)),
		})
	}
	return out, nil
}
