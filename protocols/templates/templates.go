// Package templates writes the folder of a new driver: a complete driver of TCP in
// one of several languages, with one file to replace by another protocol. The
// templates need nothing of this repository.
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
	"path"
	"path/filepath"
	"slices"
	"strings"

	"linktrial/internal/driverfolder"
	"linktrial/protocols/contract"
)

//go:embed cpp/driver.yaml cpp/Makefile cpp/*.hpp cpp/*.cpp
//go:embed go/driver.yaml go/Makefile go/*.go python/driver.yaml python/*.py
var files embed.FS

// Language is a language that there is a template in.
type Language struct {
	Name     string
	Protocol string // the one file to replace by another protocol
	Build    string // the command that builds the driver in its folder; "" where nothing is built

	executable []string // beside what is built
}

// Languages lists the languages.
var Languages = []Language{
	{Name: "go", Protocol: "protocol.go", Build: "make"},
	{Name: "cpp", Protocol: "protocol.cpp", Build: "make"},
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

// goVersion is the oldest Go that builds the template in Go.
const goVersion = "1.21"

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

// fill writes the template's files into an empty folder.
func (l *Language) fill(dir, name string) error {
	entries, err := files.ReadDir(l.Name)
	if err != nil {
		return err
	}
	if l.Name == "go" {
		// Not among the files: embed takes none of another module's folder.
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+name+"\n\ngo "+goVersion+"\n"), 0o644); err != nil {
			return err
		}
	}
	for _, e := range entries {
		b, err := files.ReadFile(path.Join(l.Name, e.Name()))
		if err != nil {
			return err
		}
		text, mode := string(b), fs.FileMode(0o644)
		switch {
		case e.Name() == driverfolder.Manifest:
			text = manifest(text, name)
		case slices.Contains(l.executable, e.Name()):
			mode = 0o755
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
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
