package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// minMajor is the oldest PostgreSQL that the migrations are written for.
const minMajor = 15

// binaries is one installed PostgreSQL.
type binaries struct {
	dir   string // holds initdb and postgres
	major int
}

// debianBinaries is where Debian's packages put each version.
const debianBinaries = "/usr/lib/postgresql"

// find returns the newest usable PostgreSQL below root or on the search path;
// where want is not 0, exactly that major version, because a data folder can
// be opened by the version that made it alone.
func find(root, searchPath string, want int) (binaries, error) {
	var all []binaries
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return binaries{}, fmt.Errorf("look for PostgreSQL: %w", err)
	}
	for _, e := range entries {
		major, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if dir := filepath.Join(root, e.Name(), "bin"); executable(filepath.Join(dir, "postgres")) && executable(filepath.Join(dir, "initdb")) {
			all = append(all, binaries{dir, major})
		}
	}
	for _, dir := range filepath.SplitList(searchPath) {
		if dir == "" || !executable(filepath.Join(dir, "postgres")) || !executable(filepath.Join(dir, "initdb")) {
			continue
		}
		out, err := exec.Command(filepath.Join(dir, "postgres"), "--version").Output()
		if err != nil {
			continue
		}
		if major, ok := parseVersion(string(out)); ok {
			all = append(all, binaries{dir, major})
		}
	}
	best := binaries{}
	for _, b := range all {
		if b.major >= minMajor && b.major > best.major && (want == 0 || b.major == want) {
			best = b
		}
	}
	switch {
	case best.major != 0:
		return best, nil
	case want != 0:
		return best, fmt.Errorf("the database in the data folder was made by PostgreSQL %d, which is not installed: install it (apt install postgresql-%d), or give --database URL", want, want)
	case len(all) > 0:
		return best, fmt.Errorf("PostgreSQL %d is too old, version %d or newer is needed: install one (apt install postgresql), or give --database URL", all[0].major, minMajor)
	}
	return best, errors.New("PostgreSQL is not installed: install it (apt install postgresql), or give --database URL")
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
