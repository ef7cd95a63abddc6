// Command generated compares the files that code is generated from, and the
// generated files, with the SHA-256 digests that make generate recorded in
// tools/generated/manifest.txt. It names each file that changed since, and fails.
//
// With -write it records the present digests; make generate does that last.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

const manifestPath = "tools/generated/manifest.txt"

// Patterns of path.Match for the files that code is generated from.
var inputs = []string{
	"api/proto/linktrial/v1/*.proto",
	"api/buf.yaml",
	"api/buf.gen.yaml",
	"migrations/*.sql",
	"orchestrator/*/queries/*.sql",
	"orchestrator/*/*/queries/*.sql",
	"sqlc.yaml",
	"scripts/generate", // the versions of protoc-gen-go, protoc-gen-connect-go and sqlc
	"tools/package-lock.json",
	"protocols/tcp/bpf/kernel/*.[ch]",
}

// Patterns of folders that hold only generated files.
var outputs = []string{"api/gen", "orchestrator/*/*db", "orchestrator/*/*/*db", "protocols/tcp/bpf/objects", "web/src/gen"}

// protoc-gen-es is one of many packages of the pages: of their lock file only its own row counts.
const (
	lockFile    = "web/package-lock.json"
	lockPackage = "node_modules/@bufbuild/protoc-gen-es"
)

func main() {
	write := flag.Bool("write", false, "record the present digests instead of comparing with the recorded ones")
	root := flag.String("root", ".", "the checkout")
	flag.Parse()
	if err := run(os.DirFS(*root), *root, *write); err != nil {
		fmt.Fprintln(os.Stderr, "generated:", err)
		os.Exit(1)
	}
}

func run(files fs.FS, root string, write bool) error {
	now, err := digests(files)
	if err != nil {
		return err
	}
	if write {
		return os.WriteFile(path.Join(root, manifestPath), format(now), 0o644)
	}
	text, err := fs.ReadFile(files, manifestPath)
	if err != nil {
		return fmt.Errorf("%w: run make generate and commit its result", err)
	}
	recorded, err := parse(string(text))
	if err != nil {
		return err
	}
	if changed := differences(recorded, now); len(changed) > 0 {
		return fmt.Errorf("generated code is not of the present sources; run make generate and commit its result:\n  %s", strings.Join(changed, "\n  "))
	}
	return nil
}

// digests returns the digest of each input and output by its path.
func digests(files fs.FS) (map[string]string, error) {
	out := map[string]string{}
	add := func(name string) error {
		b, err := fs.ReadFile(files, name)
		out[name] = digest(b)
		return err
	}
	// Of an input, which is a file, the walk has that file alone.
	for _, pattern := range slices.Concat(inputs, outputs) {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("nothing is named %s: correct the lists in tools/generated", pattern)
		}
		for _, name := range names {
			err := fs.WalkDir(files, name, func(name string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				return add(name)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	row, err := lockRow(files)
	if err != nil {
		return nil, err
	}
	out[lockFile+"#"+lockPackage] = digest(row)
	return out, nil
}

// lockRow returns version and digest of protoc-gen-es.
func lockRow(files fs.FS) ([]byte, error) {
	b, err := fs.ReadFile(files, lockFile)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", lockFile, err)
	}
	p := lock.Packages[lockPackage]
	if p.Version == "" {
		return nil, fmt.Errorf("%s has no %s", lockFile, lockPackage)
	}
	return []byte(p.Version + " " + p.Integrity), nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func format(digests map[string]string) []byte {
	var b strings.Builder
	b.WriteString("# Written by make generate, checked by make verify. After a merge conflict: make generate.\n")
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		fmt.Fprintf(&b, "%s  %s\n", digests[name], name)
	}
	return []byte(b.String())
}

func parse(text string) (map[string]string, error) {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		sum, name, ok := strings.Cut(line, "  ")
		if !ok || len(sum) != 2*sha256.Size {
			return nil, errors.New(manifestPath + " has a line that is no digest and path: " + line)
		}
		out[name] = sum
	}
	return out, nil
}

// differences describes each file that is new, changed or removed since the manifest was written.
func differences(recorded, now map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		switch sum, known := recorded[name]; {
		case !known:
			out = append(out, name+" is new")
		case sum != now[name]:
			out = append(out, name+" changed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if _, exists := now[name]; !exists {
			out = append(out, name+" was removed")
		}
	}
	return out
}
