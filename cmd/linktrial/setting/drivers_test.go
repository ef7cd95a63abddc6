package setting

import (
	"testing"

	"github.com/spf13/pflag"
)

// TestDrivers: --drivers adds folders before those that there are.
func TestDrivers(t *testing.T) {
	own := defaultDrivers()
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
		{"", nil, defaultDrivers()},
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
