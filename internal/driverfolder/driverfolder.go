// Package driverfolder finds protocol drivers in a list of folders, each of which
// has a folder with a driver.yaml for every driver. Of two drivers with one name
// the one in the earlier folder counts. Comes in: a list as PATH has it. Goes out:
// the folders of drivers.
package driverfolder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Manifest is the name of the file that makes a folder a driver's.
const Manifest = "driver.yaml"

// Split returns the folders of a list, each once, in its order.
func Split(list string) []string {
	var out []string
	for _, dir := range filepath.SplitList(list) {
		if dir != "" && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// Join makes a list of folders and lists.
func Join(lists ...string) string {
	return strings.Join(Split(strings.Join(lists, string(filepath.ListSeparator))), string(filepath.ListSeparator))
}

// Shown is a list as messages have it.
func Shown(list string) string {
	dirs := Split(list)
	if n := len(dirs); n > 1 {
		return strings.Join(dirs[:n-1], ", ") + " and " + dirs[n-1]
	}
	return strings.Join(dirs, "")
}

// Abs makes every folder of a list absolute.
func Abs(list string) (string, error) {
	dirs := Split(list)
	for i, dir := range dirs {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("folder %s: %w", dir, err)
		}
		dirs[i] = abs
	}
	return Join(dirs...), nil
}

// Find returns the folder of a driver; false where no folder of the list has one.
func Find(list, name string) (dir string, found bool) {
	for _, parent := range Split(list) {
		dir := filepath.Join(parent, name)
		if has(dir) {
			return dir, true
		}
	}
	return "", false
}

func has(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, Manifest))
	// One that is there and cannot be read is for its reader to report.
	return err == nil || !errors.Is(err, os.ErrNotExist) && isDir(dir)
}

func isDir(dir string) bool {
	st, err := os.Stat(dir)
	return err == nil && st.IsDir()
}

// Names lists the drivers of all folders, sorted. Every folder must be there.
func Names(list string) ([]string, error) {
	var names []string
	for _, parent := range Split(list) {
		entries, err := os.ReadDir(parent)
		if err != nil {
			return nil, fmt.Errorf("folder of drivers: %w", err)
		}
		for _, e := range entries {
			if has(filepath.Join(parent, e.Name())) {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
