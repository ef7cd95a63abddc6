package machine

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ModuleFolder holds the modules in the machine, ModuleOrder their file names in
// the order in which they are loaded, one a line.
const (
	ModuleFolder = "/modules"
	ModuleOrder  = "/modules/order"
)

// ErrNoModule reports a module that a kernel has neither as a file nor built in.
var ErrNoModule = errors.New("the kernel has no such module")

// moduleSet finds a kernel's modules.
type moduleSet struct {
	paths   map[string]string // by name, with underscores
	builtIn map[string]bool
}

// moduleName is the name as the kernel has it: "sch-fq.ko.xz" is sch_fq.
func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func readModules(folder string) (*moduleSet, error) {
	s := &moduleSet{paths: map[string]string{}, builtIn: map[string]bool{}}
	err := filepath.WalkDir(filepath.Join(folder, "kernel"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), ".ko") {
			s.paths[moduleName(p)] = p
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("modules of the kernel: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(folder, "modules.builtin"))
	if err != nil {
		return nil, fmt.Errorf("modules of the kernel: %w", err)
	}
	for _, f := range strings.Fields(string(b)) {
		s.builtIn[moduleName(f)] = true
	}
	return s, nil
}

// files returns the named modules and all that they depend on, each after what
// it needs, as files of the machine; those of later are there and not in the order.
func (s *moduleSet) files(names, later []string) ([]File, error) {
	var out []File
	var order bytes.Buffer
	done := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		name = moduleName(name)
		if done[name] || s.builtIn[name] {
			return nil
		}
		done[name] = true
		p, ok := s.paths[name]
		if !ok {
			return fmt.Errorf("module %s: %w", name, ErrNoModule)
		}
		content, err := readModule(p)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		needs, err := dependencies(content)
		if err != nil {
			return fmt.Errorf("module %s: %w", name, err)
		}
		for _, n := range needs {
			if err := add(n); err != nil {
				return fmt.Errorf("%s needs %w", name, err)
			}
		}
		out = append(out, File{Name: ModuleFolder + "/" + name + ".ko", Content: content})
		fmt.Fprintf(&order, "%s.ko\n", name)
		return nil
	}
	for _, n := range names {
		if err := add(n); err != nil {
			return nil, err
		}
	}
	out = append(out, File{Name: ModuleOrder, Content: bytes.Clone(order.Bytes())})
	for _, n := range later {
		if err := add(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readModule returns a module as the kernel loads it.
func readModule(file string) ([]byte, error) {
	switch {
	case strings.HasSuffix(file, ".ko"):
		return os.ReadFile(file)
	case strings.HasSuffix(file, ".ko.xz"):
		out, err := exec.Command("xz", "-dc", file).Output()
		if err != nil {
			return nil, fmt.Errorf("unpack %s with xz: %w", file, err)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s is packed in a way that is not known here, expected .ko or .ko.xz", file)
}

// dependencies reads the names of what a module needs from its section .modinfo.
func dependencies(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it has no section .modinfo")
	}
	b, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("section .modinfo: %w", err)
	}
	for entry := range strings.SplitSeq(string(b), "\x00") {
		if v, ok := strings.CutPrefix(entry, "depends="); ok && v != "" {
			return strings.Split(v, ","), nil
		}
	}
	return nil, nil
}
