package typeset

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Variable names the folder of Typst's wheel where it is not where 'make build' or a package
// puts it.
const Variable = "LINKTRIAL_TYPST"

// ErrMissing is of a machine on which a PDF cannot be made: Typst or Python is not there. The
// report as HTML needs neither.
var ErrMissing = errors.New("the report as PDF cannot be made on this machine (as HTML it can)")

// module is a file of the wheel by which its folder is known.
const module = "typst/__init__.py"

// tool is what sets a report.
type tool struct {
	python string // the program
	folder string // of the unpacked wheel
}

func findTool() (tool, error) {
	folder, err := findFolder()
	if err != nil {
		return tool{}, err
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return tool{}, fmt.Errorf("%w: it needs the program python3, which is not in PATH: install Debian's package python3", ErrMissing)
	}
	return tool{python, folder}, nil
}

// findFolder returns the folder of the wheel: the one that is named, else the one beside the
// program, that of the package which the program is of, wherever it was unpacked, or that of
// an installed program.
func findFolder() (string, error) {
	const installed = "/usr/lib/linktrial/typst"
	places := []string{os.Getenv(Variable)}
	if places[0] == "" {
		places = []string{installed}
		if exe, err := os.Executable(); err == nil {
			dir := filepath.Dir(exe)
			places = []string{filepath.Join(dir, "typst"), filepath.Join(dir, "..", "lib", "linktrial", "typst"), installed}
		}
	}
	for _, place := range places {
		if _, err := os.Stat(filepath.Join(place, module)); err == nil {
			return filepath.Abs(place)
		}
	}
	return "", fmt.Errorf("%w: the typesetter Typst is not in %s: 'make build' and the laptop package put it beside the program, and %s names another folder of its wheel for Python",
		ErrMissing, places[0], Variable)
}
