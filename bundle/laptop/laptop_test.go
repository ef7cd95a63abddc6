package laptop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/bundle"
)

var committed = time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC)

// small is a package of small files: programs of Debian take the place of the real ones. One
// of PostgreSQL's, ls, needs two libraries beyond libc.
func small(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	link := func(name, to string) {
		t.Helper()
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	for _, f := range []string{"postgres.bki", "timezonesets/Default", "tsearch_data/english.stop", "extension/plpgsql.control", "extension/hstore.control", "man/man1/psql.1.gz"} {
		write("share/15/"+f, f)
	}
	link("pg/15/bin/postgres", "/bin/true")
	link("pg/15/bin/initdb", "/bin/ls")
	link("pg/15/lib/plpgsql.so", "/bin/true")
	link("pg/15/lib/dict_snowball.so", "/bin/true")
	write("drivers/tcp/driver.yaml", "name: tcp\n")
	write("typst/typst/__init__.py", "from ._typst import *\n")
	write("typst/typst/__pycache__/__init__.cpython-311.pyc", "made by who used it")
	link("drivers/tcp/tcp", "/bin/true")
	for _, f := range []string{"plans/quickstart.yaml", "plans/plans.go", "radio-profiles/mpu4.yaml", "topologies/k-lot.yaml", "licences/texts.txt", "unit", "LICENSE"} {
		write(f, f)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	return Config{
		Out: at("out"), Version: "v1.2.0", Program: "/bin/true", Drivers: at("drivers"), PostgreSQL: PostgreSQL{at("pg/15"), at("share/15")},
		Typst: at("typst"),
		Folders: map[string]string{
			"share/linktrial/plans": at("plans"), "share/linktrial/radio-profiles": at("radio-profiles"),
			"share/linktrial/topologies": at("topologies"), licencesFolder: at("licences"),
		},
		Files: map[string]string{
			"lib/systemd/system/linktrial-orchestrator.service": at("unit"), "lib/systemd/system/linktrial-agent.service": at("unit"),
			"share/doc/linktrial/copyright": at("LICENSE"),
		},
		Modified: committed,
	}
}

// TestLayout holds what is in a package, where, and with which rights, and that both forms
// have the same.
func TestLayout(t *testing.T) {
	p, err := Build(t.Context(), small(t))
	require.NoError(t, err)
	require.Equal(t, "1.2.0", p.Version)
	for _, f := range p.Files {
		require.True(t, bundle.IsLaptopPackage(f), f)
	}
	deb, other := readDeb(t, p.Files[0]), readTar(t, p.Files[1], "linktrial-1.2.0/")
	var programs, names []string
	for name, e := range deb {
		names = append(names, name)
		switch e.header.Mode {
		case 0o755:
			programs = append(programs, name)
		case 0o644:
		default:
			t.Errorf("%s has mode %o", name, e.header.Mode)
		}
		if name != readmeFile {
			require.Equal(t, e.content, other[name].content, name)
			require.Equal(t, e.header.Mode, other[name].header.Mode, name)
		}
	}
	require.Len(t, other, len(deb))
	require.Contains(t, other, "README.txt")

	slices.Sort(names)
	slices.Sort(programs)
	const database = databaseFolder + "/lib/postgresql/15/"
	require.Equal(t, []string{programFile, driversFolder + "/tcp/tcp", database + "bin/initdb", database + "bin/postgres", database + "lib/dict_snowball.so",
		database + "lib/plpgsql.so"}, programs)
	var libraries []string
	names = slices.DeleteFunc(names, func(name string) bool {
		library := path.Dir(name) == databaseFolder+"/lib"
		if library {
			libraries = append(libraries, path.Base(name))
		}
		return library || slices.Contains(programs, name) || strings.HasPrefix(name, licencesFolder+"/debian/lib")
	})
	require.Equal(t, []string{"libpcre2-8.so.0", "libselinux.so.1"}, libraries)
	const share = databaseFolder + "/share/postgresql/15/"
	require.Equal(t, []string{driversFolder + "/tcp/driver.yaml", share + "extension/plpgsql.control", share + "postgres.bki", share + "timezonesets/Default",
		share + "tsearch_data/english.stop", typstFolder + "/typst/__init__.py", "lib/systemd/system/linktrial-agent.service", "lib/systemd/system/linktrial-orchestrator.service", readmeFile,
		"share/doc/linktrial/copyright", licencesFolder + "/debian/coreutils", licencesFolder + "/texts.txt", "share/linktrial/plans/quickstart.yaml",
		"share/linktrial/radio-profiles/mpu4.yaml", "share/linktrial/topologies/k-lot.yaml"}, names)

	for file, text := range map[string]string{"deb": deb[readmeFile].content, "tar": other["README.txt"].content} {
		named := placesNamed(text)
		require.Greater(t, len(named), 8, file)
		for _, place := range named {
			require.True(t, tree{}.with(deb).has(place), "%s: README.txt names %s", file, place)
		}
	}
}

// TestDocuments: documents are in the package, and named in README.txt, where they were made.
func TestDocuments(t *testing.T) {
	for _, made := range []bool{false, true} {
		cfg := small(t)
		if made {
			for place, file := range map[string]string{"share/doc/linktrial/html": "index.html", "share/man": "man1/linktrial.1"} {
				folder := t.TempDir()
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(folder, file), nil, 0o644))
				cfg.Folders[place] = folder
			}
		}
		p, err := Build(t.Context(), cfg)
		require.NoError(t, err)
		deb := readDeb(t, p.Files[0])
		for _, file := range []string{"share/doc/linktrial/html/index.html", "share/man/man1/linktrial.1"} {
			require.Equal(t, made, tree{}.with(deb).has(file))
		}
		for _, line := range []string{"/usr/share/doc/linktrial/html ", "/usr/share/man "} {
			require.Equal(t, made, strings.Contains(deb[readmeFile].content, line), line)
		}
	}
}

// TestControl holds what dpkg is told.
func TestControl(t *testing.T) {
	p, err := Build(t.Context(), small(t))
	require.NoError(t, err)
	out, err := exec.Command("dpkg-deb", "--field", p.Files[0]).Output()
	require.NoError(t, err)
	for _, want := range []string{"Package: linktrial\n", "Version: 1.2.0\n", "Architecture: amd64\n", "Depends: libc6 (>= " + p.Libc + "), passwd\n", "Recommends: python3\n"} {
		require.Contains(t, string(out), want)
	}
	control := t.TempDir()
	require.NoError(t, exec.Command("dpkg-deb", "--control", p.Files[0], control).Run())
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		got, err := os.ReadFile(filepath.Join(control, script))
		require.NoError(t, err)
		want, err := os.ReadFile(filepath.Join("scripts", script))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
}

// TestReproducible: the same content gives the same bytes, whenever and wherever it is built
// and whatever rights and times its files have.
func TestReproducible(t *testing.T) {
	var built [2][]string
	for i := range built {
		cfg := small(t)
		if i == 1 {
			t.Setenv("SOURCE_DATE_EPOCH", "1")
			plan := filepath.Join(cfg.Folders["share/linktrial/plans"], "quickstart.yaml")
			require.NoError(t, os.Chmod(plan, 0o640))
			require.NoError(t, os.Chtimes(plan, committed, committed))
		}
		p, err := Build(t.Context(), cfg)
		require.NoError(t, err)
		built[i] = p.Files
	}
	for i := range built[0] {
		require.Equal(t, filepath.Base(built[0][i]), filepath.Base(built[1][i]))
		a, err := os.ReadFile(built[0][i])
		require.NoError(t, err)
		b, err := os.ReadFile(built[1][i])
		require.NoError(t, err)
		require.True(t, bytes.Equal(a, b), filepath.Base(built[0][i]))
	}
}

// TestRefused holds what is said of a package that cannot be built, and that none is left.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(cfg *Config)
		want   string
	}{
		"no program":             {func(cfg *Config) { cfg.Program = filepath.Join(cfg.Out, "absent") }, "no such file"},
		"no ELF":                 {func(cfg *Config) { cfg.Program = cfg.Files["share/doc/linktrial/copyright"] }, "no Linux program"},
		"no drivers":             {func(cfg *Config) { cfg.Drivers = cfg.Folders["share/linktrial/plans"] }, "there is no driver in"},
		"version":                {func(cfg *Config) { cfg.Version = "a b" }, `version "a b"`},
		"README.txt":             {func(cfg *Config) { delete(cfg.Folders, "share/linktrial/plans") }, "README.txt names share/linktrial/plans, which is not in the package"},
		"two files":              {func(cfg *Config) { cfg.Files["share/linktrial/plans/quickstart.yaml"] = "/bin/true" }, "two files for share/linktrial/plans/quickstart.yaml"},
		"driver needs a library": {func(cfg *Config) { relink(cfg, "/bin/ls") }, "lib/linktrial/drivers/tcp/tcp: needs libselinux.so.1, which a bare Debian lacks"},
		"no licence":             {func(cfg *Config) { unpackaged(cfg) }, "no Debian package has installed it"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := small(t)
			c.change(&cfg)
			_, err := Build(t.Context(), cfg)
			require.ErrorContains(t, err, c.want)
			left, err := filepath.Glob(filepath.Join(cfg.Out, "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// relink has another program be the driver.
func relink(cfg *Config, program string) {
	driver := filepath.Join(cfg.Drivers, "tcp", "tcp")
	_ = os.Remove(driver)
	_ = os.Symlink(program, driver)
}

// unpackaged makes PostgreSQL a file that dpkg does not know.
func unpackaged(cfg *Config) {
	b, _ := os.ReadFile("/bin/true")
	file := filepath.Join(cfg.PostgreSQL.Programs, "bin", "postgres")
	_ = os.Remove(file)
	_ = os.WriteFile(file, b, 0o755)
}

// TestReplace: a package whose writing ends early leaves the one before it, and its
// signature.
func TestReplace(t *testing.T) {
	to := filepath.Join(t.TempDir(), "linktrial.deb")
	require.NoError(t, os.WriteFile(to, []byte("before"), 0o644))
	require.NoError(t, os.WriteFile(to+".minisig", nil, 0o644))
	err := replace(to, func(part string) error {
		require.NoError(t, os.WriteFile(part, []byte("half"), 0o644))
		return context.Canceled
	})
	require.ErrorIs(t, err, context.Canceled)
	b, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Equal(t, "before", string(b))
	require.FileExists(t, to+".minisig")
	require.NoFileExists(t, to+".part")

	require.NoError(t, replace(to, func(part string) error { return os.WriteFile(part, []byte("after"), 0o644) }))
	require.NoFileExists(t, to+".minisig") // it was that of the one before
}
