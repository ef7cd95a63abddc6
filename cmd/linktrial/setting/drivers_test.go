package setting

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
)

// TestDrivers: --drivers adds folders before those that there are.
func TestDrivers(t *testing.T) {
	installed := new(Settings).ownDrivers()
	own := installed
	if !isDir(own) {
		own = ""
	}
	with := func(list string) string {
		if own == "" {
			return list
		}
		return list + ":" + own
	}
	for _, c := range []struct {
		environment string
		args        []string
		want        string
	}{
		{"", nil, installed},
		{"/env", nil, with("/env")},
		{"", []string{"--drivers", "/a"}, with("/a")},
		{"/env", []string{"--drivers", "/a", "--drivers=/b:/c"}, with("/a:/b:/c:/env")},
		{"/env", []string{"--drivers", "/env"}, with("/env")},
	} {
		t.Setenv("LINKTRIAL_DRIVERS", c.environment)
		var s Settings
		f := pflag.NewFlagSet("test", pflag.ContinueOnError)
		s.Register(f)
		if err := f.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if s.Drivers != c.want {
			t.Errorf("LINKTRIAL_DRIVERS=%s %q: %q, expected %q", c.environment, c.args, s.Drivers, c.want)
		}
	}
	var s Settings
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Register(f)
	if err := f.Parse([]string{"--drivers", ""}); err == nil {
		t.Error("an empty folder is taken")
	}
}

// TestDriversOfProgram: the drivers are those beside the program that processes are started
// from, where that is not this one.
func TestDriversOfProgram(t *testing.T) {
	t.Setenv("LINKTRIAL_DRIVERS", "")
	dir := t.TempDir()
	beside := filepath.Join(dir, "drivers")
	if err := os.Mkdir(beside, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Settings{Program: filepath.Join(dir, "linktrial")}
	s.Register(pflag.NewFlagSet("test", pflag.ContinueOnError))
	if s.Drivers != beside {
		t.Errorf("%q, expected %q", s.Drivers, beside)
	}
	if exe, err := s.Executable(); err != nil || exe != s.Program {
		t.Errorf("%q, %v, expected %q", exe, err, s.Program)
	}
}

// TestDriversOfPackage: a program that was unpacked anywhere has the drivers of its package.
func TestDriversOfPackage(t *testing.T) {
	t.Setenv("LINKTRIAL_DRIVERS", "")
	dir := filepath.Join(t.TempDir(), "USB STICK")
	own := filepath.Join(dir, "lib", "linktrial", "drivers")
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	s := Settings{Program: filepath.Join(dir, "bin", "linktrial")}
	s.Register(pflag.NewFlagSet("test", pflag.ContinueOnError))
	if s.Drivers != own {
		t.Errorf("%q, expected %q", s.Drivers, own)
	}
}
