package driverdigest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"linktrial/internal/driverfolder"
	"linktrial/internal/inputfile"
	"linktrial/internal/yamldoc"
)

// list is what a manifest names as the driver's files; nil: everything counts.
type list []string

// Listed reports whether a manifest's list of files covers a path, both relative
// to the driver's folder, with slashes. An empty list covers everything.
func Listed(files []string, name string) bool { return list(files).has(path.Clean(name)) }

// readList reads the list "files" of a manifest. A manifest that is not there or
// that is not one lists nothing: whoever runs the driver refuses it.
func readList(file string) (list, error) {
	text, there, err := readManifest(file)
	if !there {
		return nil, err
	}
	return parseList(file, text), nil
}

func readManifest(file string) (text []byte, there bool, err error) {
	text, err = inputfile.Read(file, yamldoc.MaxText)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("driver's folder: %w", err)
	}
	return text, true, nil
}

func parseList(file string, text []byte) list {
	root := yamldoc.Parse(file, text).Root()
	if !root.IsMapping() {
		return nil
	}
	field := root.Mapping().Field("files")
	if !field.IsList() {
		return nil
	}
	out := list{driverfolder.Manifest}
	for _, v := range field.List() {
		out = append(out, path.Clean(v.String("")))
	}
	return out
}

// parsed is the list of a manifest with a text.
type parsed struct {
	text []byte
	list list
}

// list is [readList]. A text that is still the same is not parsed again, which takes most
// of the time of a look at a folder, and there are several before each transfer.
func (c *Cache) list(file string) (list, error) {
	text, there, err := readManifest(file)
	if !there {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.lists[file]; ok && bytes.Equal(p.text, text) {
		return p.list, nil
	}
	if c.lists == nil {
		c.lists = map[string]parsed{}
	}
	p := parsed{text, parseList(file, text)}
	c.lists[file] = p
	return p.list, nil
}

// has reports whether a file counts.
func (l list) has(name string) bool {
	return len(l) == 0 || slices.ContainsFunc(l, func(x string) bool { return x == name || strings.HasPrefix(name, x+"/") })
}

// leadsTo reports whether a folder counts, or something below it may.
func (l list) leadsTo(folder string) bool {
	return folder == "." || l.has(folder) || slices.ContainsFunc(l, func(x string) bool { return strings.HasPrefix(x, folder+"/") })
}

// refuseCompiled refuses a folder of compiled Python modules that does not count:
// Python executes them in place of the sources, without a look at more of these
// than a time and a size.
func (l list) refuseCompiled(dir, rel string) error {
	if path.Base(rel) != "__pycache__" || l.has(rel) {
		return nil
	}
	there, err := filepath.Glob(filepath.Join(dir, "*.pyc"))
	if err != nil || len(there) == 0 {
		return err
	}
	return fmt.Errorf("%s would be executed in place of its source, and the list files of %s does not name it: delete the folder, which something other than Linktrial let Python write", there[0], driverfolder.Manifest)
}

// hasTarget reports whether what a link refers to counts, too: otherwise it could
// change and the digest would not.
func (l list) hasTarget(root, path, rel, link string) bool {
	if len(l) == 0 {
		return true
	}
	if !l.has(filepath.ToSlash(filepath.Join(filepath.Dir(rel), link))) {
		return false
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return os.IsNotExist(err)
	}
	target, err = filepath.Rel(root, target)
	return err == nil && l.has(filepath.ToSlash(target))
}

// missing is a name of the list that none of the entries has, or "".
func (l list) missing(entries []entry) string {
	for _, name := range l {
		if !slices.ContainsFunc(entries, func(e entry) bool { return e.path == name || strings.HasPrefix(e.path, name+"/") }) {
			return name
		}
	}
	return ""
}
