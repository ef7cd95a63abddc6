package laptop

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"linktrial/bundle"
	"linktrial/internal/driverfolder"
	"linktrial/internal/scratch"
)

// Places in a package, below /usr.
const (
	programFile    = "bin/linktrial"
	driversFolder  = "lib/linktrial/drivers"
	databaseFolder = "lib/linktrial/postgresql" // orchestrator/postgres looks there
	typstFolder    = "lib/linktrial/typst"      // orchestrator/report/typeset looks there
	readmeFile     = "share/doc/linktrial/README.txt"
	licencesFolder = "share/doc/linktrial/licences"
)

// Config says what a package is made of.
type Config struct {
	Out     string // folder of the two archives; made where there is none
	Version string // of the program, as it says itself
	Program string // path
	Drivers string // folder with a folder for each driver
	// PostgreSQL is packed with all libraries that it needs.
	PostgreSQL PostgreSQL
	Typst      string // folder of its unpacked wheel for Python, which sets reports as PDF
	// Folders and Files are what else is packed, by place below /usr. Sources in Go, which
	// embed a folder's files into the program, are left out.
	Folders, Files map[string]string
	// Modified is the modification time of every file in the archives.
	Modified time.Time
}

// Package is a package that was written.
type Package struct {
	Files   []string // paths of the .deb and of the tar
	Version string   // as Debian compares it
	Libc    string   // the oldest version of libc that it works with
}

// Build writes a package in both forms. Where it fails it leaves neither.
func Build(ctx context.Context, cfg Config) (p Package, err error) {
	if p.Version, err = debianVersion(cfg.Version, cfg.Modified); err != nil {
		return p, err
	}
	architecture, err := bundle.Architecture(cfg.Program)
	if err != nil {
		return p, err
	}
	scrap, err := scratch.New("linktrial-package-")
	if err != nil {
		return p, fmt.Errorf("package: %w", err)
	}
	defer func() { _ = scrap.Remove() }() // what stays, the next one removes
	files := tree{}
	if err := files.gather(ctx, cfg, scrap.Path); err != nil {
		return p, err
	}
	if p.Libc, err = files.oldestLibc(); err != nil {
		return p, err
	}
	if err := os.MkdirAll(cfg.Out, 0o755); err != nil {
		return p, fmt.Errorf("package: %w", err)
	}
	base := filepath.Join(cfg.Out, "linktrial_"+p.Version+"_"+architecture)
	p.Files = []string{base + ".deb", base + ".tar.gz"}
	// Beside each other: what takes time is to compress them.
	var both errgroup.Group
	both.Go(func() error {
		return replace(p.Files[0], func(path string) error { return files.deb(path, p, architecture, cfg.Modified, scrap.Path) })
	})
	both.Go(func() error {
		return replace(p.Files[1], func(path string) error { return files.tar(path, p, cfg.Modified, scrap.Path) })
	})
	if err := both.Wait(); err != nil {
		for _, f := range p.Files {
			_ = os.Remove(f) // the first error is the one to tell
		}
		return p, err
	}
	return p, nil
}

// replace writes a file beside its place and then puts it there. A signature of an earlier
// file of this name is removed.
func replace(path string, write func(path string) error) error {
	part := path + ".part"
	err := write(part)
	if err == nil {
		err = os.RemoveAll(path + bundle.SignatureSuffix)
	}
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		_ = os.Remove(part) // the first error is the one to tell
		return fmt.Errorf("package %s: %w", path, err)
	}
	return nil
}

// file is one file of a package.
type file struct {
	from string // path
	mode fs.FileMode
}

// tree is the files of a package, by place below /usr.
type tree map[string]file

func (t tree) names() []string { return slices.Sorted(maps.Keys(t)) }

// add adds one file, whose mode follows from whether it is a program.
func (t tree) add(name, from string) error {
	if _, twice := t[name]; twice {
		return fmt.Errorf("package: two files for %s", name)
	}
	if name != path.Clean(name) || strings.ContainsAny(name, "\n\\") {
		return fmt.Errorf("package: a file cannot be called %q", name)
	}
	// nfpm packs a link as one, and what this leads to is not in the package.
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return fmt.Errorf("package: %w", err)
	}
	st, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("package: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("package: %s is no regular file", from)
	}
	mode := fs.FileMode(0o644)
	if st.Mode()&0o111 != 0 {
		mode = 0o755
	}
	t[name] = file{from, mode}
	return nil
}

// addFolder adds the files of a folder that keep wants.
func (t tree) addFolder(name, from string, keep func(rel string) bool) error {
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("package: %w", err)
		}
		rel, err := filepath.Rel(from, at)
		if err != nil {
			return fmt.Errorf("package: %w", err)
		}
		if d.IsDir() || !keep(rel) {
			return nil
		}
		return t.add(path.Join(name, filepath.ToSlash(rel)), at)
	})
}

func anyFile(string) bool { return true }

func noSource(rel string) bool { return filepath.Ext(rel) != ".go" }

// noCache leaves out what Python writes beside modules that it has loaded.
func noCache(rel string) bool { return filepath.Ext(rel) != ".pyc" }

// gather lists the files of a package; what it makes itself is put into scrap.
func (t tree) gather(ctx context.Context, cfg Config, scrap string) error {
	program := filepath.Join(scrap, "linktrial")
	// Its tables of symbols are a third of it; what it prints where it fails it has elsewhere.
	if out, err := exec.CommandContext(ctx, "strip", "--strip-all", "-o", program, cfg.Program).CombinedOutput(); err != nil {
		return fmt.Errorf("package: strip %s: %w: %s", cfg.Program, err, out)
	}
	if err := t.add(programFile, program); err != nil {
		return err
	}
	if names, err := driverfolder.Names(cfg.Drivers); err != nil {
		return fmt.Errorf("package: %w", err)
	} else if len(names) == 0 {
		return fmt.Errorf("package: there is no driver in %s", driverfolder.Shown(cfg.Drivers))
	}
	// As they are: a driver's digest is that of the one which was built.
	if err := t.addFolder(driversFolder, cfg.Drivers, anyFile); err != nil {
		return err
	}
	if err := t.runsOnLibcAlone(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Folders)) {
		if err := t.addFolder(name, cfg.Folders[name], noSource); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Files)) {
		if err := t.add(name, cfg.Files[name]); err != nil {
			return err
		}
	}
	if err := cfg.PostgreSQL.addTo(ctx, t); err != nil {
		return err
	}
	if err := t.addFolder(typstFolder, cfg.Typst, noCache); err != nil {
		return err
	}
	if err := t.fitsAnyProcessor(); err != nil {
		return err
	}
	readme := filepath.Join(scrap, "README.txt")
	if err := t.writeReadme(readme, "/usr/"); err != nil {
		return err
	}
	return t.add(readmeFile, readme)
}
