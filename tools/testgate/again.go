package main

import (
	"context"
	"strings"
	"time"
)

const (
	// tries is how often a failed test is run again, alone.
	tries = 2
	// mostAgain bounds how many failed tests are tried again: more of them are no chance.
	mostAgain = 15
)

// tryAgain runs each failed real-time test again by itself, after all others have ended,
// unless its failure is one that no second look takes back.
func (g *gate) tryAgain(ctx context.Context, units []unit) {
	defer g.part("failed tests again, alone", time.Now())
	seen := map[string]int{} // package and test, and where in failures
	for i := range g.failures {
		f := &g.failures[i]
		if f.test == "" || final.MatchString(f.output) || g.isExact(*f) {
			continue
		}
		key := f.pkg + "/" + f.top()
		if strings.HasPrefix(f.pkg, "web/") {
			key = f.pkg // its tests build on each other: they are run again together
		}
		if first, ok := seen[key]; ok {
			f.again = g.failures[first].again // a subtest and its test are one
			continue
		}
		if len(seen) == mostAgain {
			continue
		}
		seen[key] = i
		for len(f.again) < tries && ctx.Err() == nil {
			a := g.alone(ctx, *f, units)
			f.again = append(f.again, a)
			g.printf("again %s: %s after %.1f s, %s\n", key, map[bool]string{true: "passed", false: "failed"}[a.passed], a.seconds, a.load)
			if !a.passed {
				break
			}
		}
	}
}

// isExact reports whether a failed test is one that no load changes.
func (g *gate) isExact(f failure) bool {
	for _, p := range g.all {
		if p.ImportPath == f.pkg {
			return p.Tests.tests[f.top()] == exact
		}
	}
	return false
}

// alone runs a failed test by itself; one in a browser with those of its file.
func (g *gate) alone(ctx context.Context, f failure, units []unit) attempt {
	(&queue{lane: computing}).waitForTurn(ctx)
	began := readPressure()
	once := gate{results: newResults(g.out), all: g.all, folder: g.folder}
	var err error
	if u, ok := pageUnit(units, f.pkg); ok {
		_, err = once.runPage(ctx, u)
	} else {
		race := false
		for _, p := range g.all {
			race = race || p.Race && p.ImportPath == f.pkg
		}
		err = once.goTest(ctx, race, "-run", exactly(f.top()), f.pkg)
	}
	return attempt{
		passed:  err == nil && once.passed > 0 && len(once.failures) == 0,
		seconds: time.Since(began.at).Seconds(), load: began.since(),
	}
}

func pageUnit(units []unit, pkg string) (unit, bool) {
	for _, u := range units {
		if u.page && u.pkg == pkg {
			return u, true
		}
	}
	return unit{}, false
}

// unsteady reports whether a test failed once and passed alone each time after.
func (f failure) unsteady() bool {
	for _, a := range f.again {
		if !a.passed {
			return false
		}
	}
	return len(f.again) == tries
}
