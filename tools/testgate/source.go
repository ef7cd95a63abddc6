package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// withoutRace has packages whose tests the race detector would disturb or not
// reach; each with the reason.
var withoutRace = map[string]string{
	"agents/runner/docker":          "minutes of real containers: the code under test is a driver's process in them, built without the detector",
	"api/gen/linktrial/v1":          "generated code",
	"tools/bench":                   "measures rates and processor time, which the detector changes by a factor of 5 to 20",
	"emulator/bench":                "measures rates and processor time, which the detector changes by a factor of 5 to 20",
	"lab/uml":                       "the code under test runs as the first process of a guest kernel, in programs built without the detector",
	"lab/uml/guest":                 "is the first process of a guest kernel: its program is built without cgo, which the detector needs",
	"protocols/cxx/cxxtest":         "tests of C++ drivers: their processes are outside the detector's reach",
	"protocols/protocoltest/stress": "runs drivers as processes, in builds with the detector of their own; the processors are for those",
	"protocols/protocoltest":        "runs every driver as a process in real time; the harness in them has its own tests under the detector",
}

// goPackage is a package as go list has it, and what its sources say of its tests.
type goPackage struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	CgoFiles     []string
	TestGoFiles  []string
	XTestGoFiles []string
	Module       struct{ Path string }

	// Race reports whether its tests run under the race detector: its own code, tests
	// aside, starts a goroutine or imports sync, sync/atomic or golang.org/x/sync.
	Race  bool     `json:"-"`
	Tests testList `json:"-"`
}

// name is the import path within the module.
func (p goPackage) name() string { return strings.TrimPrefix(p.ImportPath, p.Module.Path+"/") }

func (p goPackage) testFiles() []string { return slices.Concat(p.TestGoFiles, p.XTestGoFiles) }

// readPackages returns the module's packages that have tests.
func readPackages() ([]goPackage, error) {
	all, err := list()
	if err != nil {
		return nil, err
	}
	var out []goPackage
	for _, p := range all {
		if len(p.testFiles()) == 0 {
			continue
		}
		c, err := concurrent(p)
		if err != nil {
			return nil, err
		}
		_, without := withoutRace[p.name()]
		p.Race = c && !without
		if p.Tests, err = readTests(p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func list() ([]goPackage, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Module", "linktrial/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

func concurrent(p goPackage) (bool, error) {
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if isConcurrent(file) {
			return true, nil
		}
	}
	return false, nil
}

func isConcurrent(file *ast.File) bool {
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if path == "sync" || path == "sync/atomic" || strings.HasPrefix(path, "golang.org/x/sync/") {
			return true
		}
	}
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			found = true
		}
		return !found
	})
	return found
}
