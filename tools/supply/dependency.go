package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Kinds of dependencies.
const (
	kindGo     = "go"
	kindNPM    = "npm"
	kindC      = "c"
	kindPython = "py"
)

// dependency is something that others wrote and that is in a program, or beside it.
type dependency struct {
	kind, name, version string
	dirs                []string // where its licences are, its own folder first; empty: not at hand
	licence             string   // as its own metadata states it; empty: it is to be read in dirs
	sha512              string   // hexadecimal, of its archive; empty: not known
}

// String is the dependency as the list has it.
func (d dependency) String() string { return d.kind + " " + d.name }

// moduleRoot is the folder of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "linktrial")
	return strings.TrimSpace(string(out)), err
}

// output runs a program; the error has what it said.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	return said(dir, exec.CommandContext(ctx, name, args...))
}

// said runs a command in a folder.
func said(dir string, cmd *exec.Cmd) ([]byte, error) {
	cmd.Dir = dir
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", cmd.Args[0], cmd.Args[1], err, bytes.TrimSpace(failure.Bytes()))
	}
	return out, err
}

// programs are the patterns of the Go packages that become programs.
var programs = []string{"linktrial/cmd/...", "linktrial/protocols/..."}

// goModules lists the modules that are linked into programs, and Go itself. A folder of a
// module can have a licence of its own, which counts where a package in or below it is linked.
func goModules(ctx context.Context, root string) ([]dependency, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-json=Dir,Module"}, programs...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := said(root, cmd)
	if err != nil {
		return nil, err
	}
	goRoot, err := output(ctx, root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	all := []dependency{{kind: kindGo, name: "std", version: strings.TrimPrefix(runtime.Version(), "go"), dirs: []string{strings.TrimSpace(string(goRoot))}}}
	at := map[string]int{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		m := p.Module
		if m == nil || m.Main {
			continue
		}
		if _, ok := at[m.Path]; !ok {
			at[m.Path] = len(all)
			all = append(all, dependency{kind: kindGo, name: m.Path, version: m.Version, dirs: []string{m.Dir}})
		}
		d := &all[at[m.Path]]
		for dir := p.Dir; !slices.Contains(d.dirs, dir); dir = filepath.Dir(dir) {
			d.dirs = append(d.dirs, dir)
		}
	}
	for _, d := range all {
		slices.Sort(d.dirs) // its own is the shortest
	}
	sortDependencies(all)
	return all, nil
}

// npmPackages lists the packages that the pages can be made of: those that the
// package of the pages depends on, and theirs, but no tools that build or test. A
// build leaves out what no page uses.
func npmPackages(web string) ([]dependency, error) {
	b, err := os.ReadFile(filepath.Join(web, "package-lock.json"))
	if err != nil {
		return nil, err
	}
	return parseLock(b, web)
}

func parseLock(b []byte, web string) ([]dependency, error) {
	type entry struct {
		Version, License, Integrity string
		Dependencies                map[string]string
	}
	var lock struct {
		LockfileVersion int
		Packages        map[string]entry
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		return nil, fmt.Errorf("package-lock.json: %w", err)
	}
	if lock.LockfileVersion != 3 {
		return nil, fmt.Errorf("package-lock.json: version %d, expected 3", lock.LockfileVersion)
	}
	// find is the place of a package as Node looks for it: the nearest folder upwards.
	find := func(from, name string) (string, bool) {
		for {
			at := strings.TrimPrefix(from+"/node_modules/"+name, "/")
			if _, ok := lock.Packages[at]; ok {
				return at, true
			}
			if from == "" {
				return "", false
			}
			from = from[:max(0, strings.LastIndex(from, "/node_modules/"))]
		}
	}
	var out []dependency
	taken, seen := map[string]bool{}, map[string]bool{}
	queue := []string{""}
	for len(queue) > 0 {
		from := queue[0]
		queue = queue[1:]
		names := make([]string, 0, len(lock.Packages[from].Dependencies))
		for name := range lock.Packages[from].Dependencies {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			at, ok := find(from, name)
			if !ok {
				return nil, fmt.Errorf("package-lock.json: %s of %q is not in it", name, from)
			}
			if taken[at] {
				continue
			}
			taken[at] = true
			queue = append(queue, at)
			e := lock.Packages[at]
			name := at[strings.LastIndex(at, "node_modules/")+len("node_modules/"):]
			if seen[name+"@"+e.Version] {
				continue
			}
			seen[name+"@"+e.Version] = true
			d := dependency{kind: kindNPM, name: name, version: e.Version, licence: e.License, dirs: []string{filepath.Join(web, filepath.FromSlash(at))}}
			if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(e.Integrity, "sha512-")); err == nil && len(sum) == 64 {
				d.sha512 = hex.EncodeToString(sum)
			}
			out = append(out, d)
		}
	}
	sortDependencies(out)
	return out, nil
}

func sortDependencies(all []dependency) { slices.SortFunc(all, compare) }

func compare(a, b dependency) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
}

// native are the libraries that drivers in C++ are linked with statically, by driver.
// Debian has them, and their licences in /usr/share/doc.
var native = map[string][]dependency{
	"udt":  {{kind: kindC, name: "libudt", licence: "BSD-3-Clause", dirs: []string{"/usr/share/doc/libudt-dev"}}},
	"sctp": {{kind: kindC, name: "libusrsctp", licence: "BSD-3-Clause", dirs: []string{"/usr/share/doc/libusrsctp-dev"}}},
}

// nativeLibraries are they, with the versions that this machine has.
func nativeLibraries(ctx context.Context) map[string][]dependency {
	out := map[string][]dependency{}
	for driver, list := range native {
		for _, d := range list {
			d.version = debianVersion(ctx, d.debianPackage())
			out[driver] = append(out[driver], d)
		}
	}
	return out
}

// debianPackage is the package of a library, whose name its folder has.
func (d dependency) debianPackage() string { return filepath.Base(d.dirs[0]) }

// debianVersion is the version of an installed package; empty: it is not installed.
func debianVersion(ctx context.Context, name string) string {
	out, err := output(ctx, "", "dpkg-query", "--show", "--showformat", "${Version}", name)
	if err != nil {
		return "" // not here: the libraries are needed for building the drivers alone
	}
	return string(out)
}
