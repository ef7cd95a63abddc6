package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// minMajor is the oldest PostgreSQL that the migrations are written for.
const minMajor = 15

// binaries is one installed PostgreSQL.
type binaries struct {
	dir   string // holds initdb and postgres
	major int
	libs  string // folder with the libraries that it came with; empty: the system's
}

// debianBinaries is where Debian's packages put each version.
const debianBinaries = "/usr/lib/postgresql"

// bundledFolder is where a laptop package has its PostgreSQL, beside the folder of the
// program. It has the parts of Debian's /usr, because PostgreSQL finds its own files
// relative to its programs by the places that it was built for.
const bundledFolder = "../lib/linktrial/postgresql"

// places are where a PostgreSQL may be.
type places struct {
	bundled    string // folder of a laptop package; empty: none
	root       string // has a folder for each version
	searchPath string
}

// usual are the places on this machine, for this program.
func usual() places {
	p := places{root: debianBinaries, searchPath: os.Getenv("PATH")}
	if exe, err := os.Executable(); err == nil {
		if exe, err = filepath.EvalSymlinks(exe); err == nil {
			p.bundled = filepath.Join(filepath.Dir(exe), bundledFolder)
		}
	}
	return p
}

// find returns the PostgreSQL of the laptop package that this program is of, or the newest
// usable one of the system; where want is not 0, one of exactly that major version, because
// a data folder can be opened by the version that made it alone.
func (p places) find(want int) (binaries, error) {
	var bundled []binaries
	if p.bundled != "" {
		var err error
		if bundled, err = versionsIn(filepath.Join(p.bundled, "lib", "postgresql")); err != nil {
			return binaries{}, err
		}
		for i := range bundled {
			bundled[i].libs = filepath.Join(p.bundled, "lib")
		}
	}
	if b, ok := newest(bundled, want); ok {
		// The loader's list of folders knows no way to quote these (ld.so(8)).
		if strings.ContainsAny(b.libs, ":;") {
			return binaries{}, fmt.Errorf("PostgreSQL of this package is in %s, and works in no folder with a colon or semicolon in its name: move the package", b.libs)
		}
		return b, nil
	}
	system, err := p.system()
	if err != nil {
		return binaries{}, err
	}
	b, ok := newest(system, want)
	all := append(bundled, system...)
	switch {
	case ok:
		return b, nil
	case want != 0:
		return b, fmt.Errorf("the database in the data folder was made by PostgreSQL %d, which is not installed%s: install it (apt install postgresql-%d), or give --database URL", want, others(all), want)
	case len(all) > 0:
		return b, fmt.Errorf("PostgreSQL %d is too old, version %d or newer is needed: install one (apt install postgresql), or give --database URL", all[0].major, minMajor)
	}
	return b, errors.New("PostgreSQL is not installed: install it (apt install postgresql), or give --database URL")
}

// system lists what is installed on this machine.
func (p places) system() ([]binaries, error) {
	all, err := versionsIn(p.root)
	if err != nil {
		return nil, err
	}
	for _, dir := range filepath.SplitList(p.searchPath) {
		if dir == "" || !executable(filepath.Join(dir, "postgres")) || !executable(filepath.Join(dir, "initdb")) {
			continue
		}
		out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
		if err != nil {
			continue
		}
		if major, ok := parseVersion(string(out)); ok {
			all = append(all, binaries{dir: dir, major: major})
		}
	}
	return all, nil
}

// versionsIn lists the versions in a folder that has one for each, as Debian's.
func versionsIn(root string) ([]binaries, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for PostgreSQL: %w", err)
	}
	var all []binaries
	for _, e := range entries {
		major, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if dir := filepath.Join(root, e.Name(), "bin"); executable(filepath.Join(dir, "postgres")) && executable(filepath.Join(dir, "initdb")) {
			all = append(all, binaries{dir: dir, major: major})
		}
	}
	return all, nil
}

// newest returns the newest usable one; where want is not 0, one of that major version.
func newest(all []binaries, want int) (best binaries, ok bool) {
	for _, b := range all {
		if b.major >= minMajor && b.major > best.major && (want == 0 || b.major == want) {
			best = b
		}
	}
	return best, best.major != 0
}

// others says which versions there are instead.
func others(all []binaries) string {
	var versions []string
	for _, b := range all {
		if v := strconv.Itoa(b.major); !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return ""
	}
	return " (found: " + strings.Join(versions, ", ") + ")"
}

// environment returns what its programs need in their environment beside the usual.
func (b binaries) environment() []string {
	if b.libs == "" {
		return nil
	}
	return []string{"LD_LIBRARY_PATH=" + b.libs}
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// parseVersion reads "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)".
func parseVersion(s string) (major int, ok bool) {
	_, rest, found := strings.Cut(s, "(PostgreSQL) ")
	if !found {
		return 0, false
	}
	digits := rest
	for i, c := range rest {
		if c < '0' || c > '9' {
			digits = rest[:i]
			break
		}
	}
	major, err := strconv.Atoi(digits)
	return major, err == nil
}

// hasTimescale reports whether the server can load TimescaleDB.
func (b binaries) hasTimescale() bool {
	for _, lib := range []string{filepath.Join(b.dir, "..", "lib"), filepath.Join(b.dir, "..", "lib", "postgresql")} {
		if _, err := os.Stat(filepath.Join(lib, "timescaledb.so")); err == nil {
			return true
		}
	}
	return false
}
