package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// target is one fuzz target.
type target struct{ pkg, dir, name string }

// String is the target as it is printed and listed.
func (t target) String() string { return strings.TrimPrefix(t.pkg, "linktrial/") + "." + t.name }

// kindsFile says of every target whose bytes it decodes.
const kindsFile = "tools/fuzz/targets.txt"

//go:embed targets.txt
var kindsText string

// kinds of targets. The bytes of a remote one come from another machine: over a network, or
// in a file that somebody brings.
const (
	remote = "remote"
	local  = "local"
)

// parseKinds reads lines of a kind and a target.
func parseKinds(text string) (map[string]string, error) {
	out := map[string]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case len(f) != 2 || (f[0] != remote && f[0] != local):
			return nil, fmt.Errorf("%s:%d: expected %s or %s and a target, found %q", kindsFile, n, remote, local, strings.TrimSpace(line))
		case out[f[1]] != "":
			return nil, fmt.Errorf("%s:%d: %s is listed twice", kindsFile, n, f[1])
		default:
			out[f[1]] = f[0]
		}
	}
	return out, nil
}

// unlisted compares the targets that there are with those that are listed.
func unlisted(all []target, kinds map[string]string) error {
	left := make(map[string]bool, len(kinds))
	for name := range kinds {
		left[name] = true
	}
	var missing, gone []string
	for _, t := range all {
		if !left[t.String()] {
			missing = append(missing, t.String())
		}
		delete(left, t.String())
	}
	for name := range left {
		gone = append(gone, name)
	}
	slices.Sort(gone)
	switch {
	case len(missing) > 0:
		return fmt.Errorf("%s does not say whose bytes they decode: %s", kindsFile, strings.Join(missing, ", "))
	case len(gone) > 0:
		return fmt.Errorf("%s lists what is no fuzz target: %s", kindsFile, strings.Join(gone, ", "))
	}
	return nil
}

// chosen returns what the selection asks for, in the order in which it is to run: from
// the turn on, and then from the beginning.
func chosen(all []target, kinds map[string]string, c selection) ([]target, error) {
	var out []target
	for _, t := range all {
		if c.only.MatchString(t.String()) && (!c.remote || kinds[t.String()] == remote) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no fuzz target matches %q", c.only)
	}
	first := 0
	if c.total > 0 && c.each > 0 {
		first = int(int64(c.turn) * int64(step(int(c.total/c.each), len(out))) % int64(len(out)))
	}
	return slices.Concat(out[first:], out[:first]), nil
}

// step is by how many of n targets a turn begins later than the one before. Building takes
// some of the time, so that fewer than fit are run; and as step and n have no common
// divisor, each target is the first one of some turn.
func step(fit, n int) int {
	s := max(1, fit*3/4)
	for ; s > 1 && gcd(s, n) != 1; s-- {
	}
	return s
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// targets is the fuzz targets of all packages, in the order of their names.
func targets(ctx context.Context) ([]target, error) {
	list := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", "linktrial/...")
	var failure bytes.Buffer
	list.Stderr = &failure
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, failure.String())
	}
	var all []target
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for _, f := range append(p.TestGoFiles, p.XTestGoFiles...) {
			names, err := declared(filepath.Join(p.Dir, f))
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				all = append(all, target{p.ImportPath, p.Dir, name})
			}
		}
	}
}

// declared is the fuzz targets of one file.
func declared(file string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") {
			out = append(out, fn.Name.Name)
		}
	}
	return out, nil
}
