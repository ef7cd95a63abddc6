package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// changedFiles are the files, by their paths in the checkout, that differ from a commit or
// that git does not know yet. Where nothing differs from HEAD it is what the last commit
// changed.
func changedFiles(from string) ([]string, error) {
	diff, err := lines("git", "diff", "--name-only", "--relative", from)
	if err != nil {
		return nil, err
	}
	added, err := lines("git", "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	out := append(diff, added...)
	if len(out) == 0 && from == "HEAD" {
		return lines("git", "diff", "--name-only", "--relative", "HEAD~1")
	}
	return out, nil
}

func lines(name string, args ...string) ([]string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.Fields(string(out)), nil
}

// imports is a package, or the tests of one, and what it needs to be built.
type imports struct {
	ImportPath string
	ForTest    string   // the package whose tests these are
	Deps       []string // all of them
}

// reached are the packages among all that have a changed file, in their folder or in one
// below it that has no package of its own, or that need such a one.
func reached(all []goPackage, deps []imports, files []string) []goPackage {
	module := ""
	if len(all) > 0 {
		module = all[0].Module.Path
	}
	known := map[string]bool{}
	for _, d := range deps {
		known[d.ImportPath] = true
	}
	changed := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(f); dir != "."; dir = path.Dir(dir) {
			if pkg := module + "/" + dir; known[pkg] {
				changed[pkg] = true
				break
			}
		}
	}
	need := map[string]bool{}
	for _, d := range deps {
		of := d.ForTest
		if of == "" {
			of, _, _ = strings.Cut(d.ImportPath, ".test")
		}
		if changed[of] || slices.ContainsFunc(d.Deps, func(dep string) bool {
			dep, _, _ = strings.Cut(dep, " ") // a package as built for the tests of another
			return changed[dep]
		}) {
			need[of] = true
		}
	}
	var out []goPackage
	for _, p := range all {
		if need[p.ImportPath] {
			out = append(out, p)
		}
	}
	return out
}

// reachedBy are the packages that what differs from a commit reaches.
func reachedBy(all []goPackage, from string) ([]goPackage, error) {
	files, err := changedFiles(from)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-test", "-json=ImportPath,ForTest,Deps", "linktrial/...")
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var deps []imports
	for dec := json.NewDecoder(bytes.NewReader(b)); ; {
		var d imports
		if err := dec.Decode(&d); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		deps = append(deps, d)
	}
	out := reached(all, deps, files)
	fmt.Printf("%d changed files reach %d packages of %d\n", len(files), len(out), len(all))
	return out, nil
}
