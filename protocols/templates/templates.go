// Package templates writes the folder of a new driver: a complete driver of TCP in
// one of several languages, with one file to replace by another protocol. What else
// the driver contract asks of it are, in Go and C++, the sources that this repository's
// drivers use, in its folder linktrial. It builds outside of this repository.
//
// Comes in: a name and a language. Goes out: a folder that builds and passes the
// conformance suite.
package templates

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"linktrial/internal/driverfolder"
	"linktrial/internal/unit"
	"linktrial/protocols"
	"linktrial/protocols/contract"
)

//go:embed cpp/driver.yaml cpp/Makefile cpp/*.cpp
//go:embed go/driver.yaml go/Makefile go/*.go python/driver.yaml python/*.py
var files embed.FS

// Language is a language that there is a template in.
type Language struct {
	Name     string
	Protocol string // the one file to replace by another protocol
	Build    string // the command that builds the driver in its folder; "" where nothing is built

	executable []string                     // beside what is built
	sources    func(dir, name string) error // writes this repository's sources of that language
}

// Languages lists the languages.
var Languages = []Language{
	{Name: "go", Protocol: "protocol.go", Build: "make", sources: goSources},
	{Name: "cpp", Protocol: "protocol.cpp", Build: "make", sources: cxxSources},
	{Name: "python", Protocol: "protocol.py", executable: []string{"driver.py"}},
}

// Names lists the languages' names.
func Names() []string {
	out := make([]string, len(Languages))
	for i, l := range Languages {
		out[i] = l.Name
	}
	return out
}

// goVersion is the oldest Go that builds the harness.
const goVersion = "1.25"

// shipped is the folder of a new driver that has this repository's sources.
const shipped = "linktrial"

// licence is beside them.
const licence = `The sources in this folder are Linktrial's, under the Apache License 2.0
(https://www.apache.org/licenses/LICENSE-2.0). To have those of a newer Linktrial,
replace the folder by that of a driver that its "linktrial protocol new" writes.
`

// ErrExists reports that there is something where the folder would be written.
var ErrExists = errors.New("exists already")

// Write makes the folder parent/name with a driver of that name.
func Write(parent, name, language string) (dir string, l Language, err error) {
	if !contract.ValidName(name) {
		return "", l, fmt.Errorf("name %q, expected at most 32 lower-case letters, digits and hyphens, a letter first: plans name the protocol so", name)
	}
	for _, l = range Languages {
		if l.Name == language {
			break
		}
	}
	if l.Name != language {
		return "", l, fmt.Errorf("language %q, expected %s", language, strings.Join(Names(), ", "))
	}
	dir = filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = ErrExists
		}
		return "", l, fmt.Errorf("folder of the driver: %s: %w", dir, err)
	}
	if err := l.fill(dir, name); err != nil {
		return "", l, fmt.Errorf("folder of the driver: %w", err)
	}
	return dir, l, nil
}

// fill writes the driver's files into an empty folder.
func (l *Language) fill(dir, name string) error {
	template, err := fs.Sub(files, l.Name)
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, template); err != nil {
		return err
	}
	b, err := fs.ReadFile(template, driverfolder.Manifest)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(dir, driverfolder.Manifest), manifest(string(b), name)); err != nil {
		return err
	}
	for _, file := range l.executable {
		if err := os.Chmod(filepath.Join(dir, file), 0o755); err != nil {
			return err
		}
	}
	if l.sources == nil {
		return nil
	}
	if err := l.sources(dir, name); err != nil {
		return err
	}
	return write(filepath.Join(dir, shipped, "README"), licence)
}

// goSources writes the harness as a module with the name that it has here, so that no
// import differs. It needs nothing but the standard library.
func goSources(dir, name string) error {
	module := filepath.Join(dir, shipped)
	if err := os.CopyFS(filepath.Join(module, "protocols"), protocols.Go); err != nil {
		return err
	}
	const version = "\n\ngo " + goVersion + "\n"
	return errors.Join(
		write(filepath.Join(module, "internal/unit/unit.go"), string(unit.Source)),
		write(filepath.Join(module, "go.mod"), "module linktrial"+version),
		write(filepath.Join(dir, "go.mod"), "module driver/"+name+version+"\nrequire linktrial v0.0.0\n\nreplace linktrial => ./"+shipped+"\n"))
}

func cxxSources(dir, _ string) error {
	sources, err := fs.Sub(protocols.CXX, "cxx")
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(dir, shipped), sources)
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// manifest gives a template's manifest the names of the new driver.
func manifest(text, name string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for key, value := range map[string]string{"name": name, "title": name, "version": "0.1.0"} {
			if strings.HasPrefix(line, key+": ") {
				lines[i] = key + ": " + value
			}
		}
	}
	return strings.Join(lines, "\n")
}
