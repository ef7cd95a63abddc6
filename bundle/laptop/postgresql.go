package laptop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// PostgreSQL is one that Debian's package has installed on this machine.
type PostgreSQL struct {
	Programs string // "/usr/lib/postgresql/15"
	Share    string // "/usr/share/postgresql/15"
}

// FindPostgreSQL returns the newest one on this machine.
func FindPostgreSQL() (PostgreSQL, error) {
	const programs, share = "/usr/lib/postgresql", "/usr/share/postgresql"
	entries, err := os.ReadDir(programs)
	if err != nil && !os.IsNotExist(err) {
		return PostgreSQL{}, fmt.Errorf("PostgreSQL for the package: %w", err)
	}
	newest := 0
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > newest {
			if _, err := os.Stat(filepath.Join(programs, e.Name(), "bin", "postgres")); err == nil {
				newest = n
			}
		}
	}
	if newest == 0 {
		return PostgreSQL{}, fmt.Errorf("PostgreSQL for the package: none is in %s, install Debian's (scripts/install-deps)", programs)
	}
	version := strconv.Itoa(newest)
	return PostgreSQL{filepath.Join(programs, version), filepath.Join(share, version)}, nil
}

// Of PostgreSQL's files, an orchestrator's private database uses its two programs and what
// initdb loads: the language of functions and the stemmers of text search. No migration
// creates an extension that the package could have.
var (
	databasePrograms  = []string{"bin/postgres", "bin/initdb"}
	databaseLibraries = []string{"lib/plpgsql.so", "lib/dict_snowball.so"}
)

// shared reports whether a file of PostgreSQL's share folder is one that initdb or the
// server reads.
func shared(rel string) bool {
	switch top, _, below := strings.Cut(filepath.ToSlash(rel), "/"); {
	case !below:
		return true
	case top == "timezonesets" || top == "tsearch_data":
		return true
	default:
		return top == "extension" && strings.HasPrefix(path.Base(rel), "plpgsql")
	}
}

// addTo adds PostgreSQL, the libraries that it needs beyond libc, and the licences of both.
func (p PostgreSQL) addTo(ctx context.Context, t tree) error {
	version := filepath.Base(p.Programs)
	// PostgreSQL finds its files relative to its programs by where Debian's build has them
	// below /usr, so the folder has the same parts.
	programs := path.Join(databaseFolder, "lib", "postgresql", version)
	var own []string // by place
	for _, name := range slices.Concat(databasePrograms, databaseLibraries) {
		place := path.Join(programs, name)
		if err := t.add(place, filepath.Join(p.Programs, name)); err != nil {
			return err
		}
		own = append(own, place)
	}
	if err := t.addFolder(path.Join(databaseFolder, "share", "postgresql", version), p.Share, shared); err != nil {
		return err
	}
	libraries, err := t.needed(ctx, own)
	if err != nil {
		return err
	}
	for _, from := range libraries {
		place := path.Join(databaseFolder, "lib", filepath.Base(from))
		if err := t.add(place, from); err != nil {
			return err
		}
		t[place] = file{t[place].from, 0o644}
		own = append(own, place)
	}
	return t.addCopyrights(ctx, own)
}

// needed returns the libraries that programs and libraries of the tree need beyond libc,
// those that these need among them, by the paths at which the loader finds them.
func (t tree) needed(ctx context.Context, places []string) ([]string, error) {
	var all []string
	for _, place := range places {
		cmd := exec.CommandContext(ctx, "ldd", t[place].from)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("package: libraries of %s: ldd: %w", t[place].from, err)
		}
		found, err := parseLdd(string(out))
		if err != nil {
			return nil, fmt.Errorf("package: libraries of %s: %w", t[place].from, err)
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// parseLdd reads the lines of ldd(1), such as
// "	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f7a08a00000)".
func parseLdd(out string) (paths []string, err error) {
	for line := range strings.Lines(out) {
		name, target, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok || slices.Contains(libcLibraries, name) {
			continue // the loader itself, and the kernel's
		}
		target, _, _ = strings.Cut(target, " (0x")
		if !filepath.IsAbs(target) {
			return nil, fmt.Errorf("%s is %s", name, target)
		}
		paths = append(paths, target)
	}
	return paths, nil
}

// addCopyrights adds the licences of the Debian packages that files of the tree are from.
func (t tree) addCopyrights(ctx context.Context, places []string) error {
	for _, place := range places {
		name, err := debianPackage(ctx, t[place].from)
		if err != nil {
			return err
		}
		licence := path.Join(licencesFolder, "debian", name)
		if _, there := t[licence]; there {
			continue
		}
		if err := t.add(licence, filepath.Join("/usr/share/doc", name, "copyright")); err != nil {
			return err
		}
	}
	return nil
}

// debianPackage returns the name of the package that a file is from. The file is below /usr,
// where all of Debian is by now, and dpkg may know it by a path without that.
func debianPackage(ctx context.Context, file string) (string, error) {
	for _, f := range []string{file, strings.TrimPrefix(file, "/usr")} {
		out, err := exec.CommandContext(ctx, "dpkg-query", "--search", f).Output()
		if err == nil {
			name, _, _ := strings.Cut(string(out), ":")
			return name, nil
		}
	}
	return "", fmt.Errorf("package: licence of %s: no Debian package has installed it", file)
}
