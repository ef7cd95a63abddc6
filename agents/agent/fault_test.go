package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/radio"
)

// What cannot be right is refused before anything is made.
func TestBadFlags(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"a name that is a path":         {func(c *Config) { c.Name = "../../x" }, `name "../../x" of a node, expected letters`},
		"an address of five":            {func(c *Config) { c.RadioAddress = "999.1.1.1" }, `radio address "999.1.1.1" (--radio-address), expected an IP address`},
		"a name that is no address":     {func(c *Config) { c.RadioAddress = "radio" }, `radio address "radio"`},
		"an interface that is a path":   {func(c *Config) { c.Device = "../eth0" }, `interface "../eth0"`},
		"an interface that is too long": {func(c *Config) { c.Device = strings.Repeat("x", 16) }, "at most 15 characters"},
		"a peer without an address":     {func(c *Config) { c.Peers = map[radio.Role]string{radio.RoleServer: "?"} }, `radio address "?" of the server`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			cfg := config(t, radio.RoleClient, "http://127.0.0.1:1")
			cfg.StateDir = dir
			c.change(&cfg)
			require.ErrorContains(t, Run(t.Context(), cfg), c.want)
			_, err := os.Stat(dir)
			require.ErrorIs(t, err, os.ErrNotExist, "a folder was made")
		})
	}
}

// A radio that is not there yet is named, with what there is and what to do.
func TestRadioFault(t *testing.T) {
	require.Empty(t, radioFault("lo", "127.0.0.1", false))
	require.Empty(t, radioFault("lo", "", false))
	require.Empty(t, radioFault("lo", "::1%lo", false))
	require.Empty(t, radioFault("", "10.0.0.1", false))
	missing := radioFault("nope0", "10.0.0.1", false)
	require.Contains(t, missing, "no network interface nope0")
	require.Contains(t, missing, "there are lo")
	other := radioFault("lo", "10.255.255.1", false)
	require.Contains(t, other, "interface lo does not have the address 10.255.255.1")
	require.Contains(t, other, "it has 127.0.0.1")
}

func FuzzParseNote(f *testing.F) {
	f.Add([]byte(`{"run":"a-1","sheet_hash":"h","wish":"run","taken":"2026-01-01T00:00:00Z","orders":[{"id":"1","kind":"pause"}]}`))
	f.Add([]byte(`{"run":"../x","wish":"run"}`))
	f.Add([]byte(`{"run":"a-1","wish":"dance"}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := parseNote(b)
		if err != nil {
			return
		}
		if n.Run != filepath.Base(n.Run) || n.Run == ".." {
			t.Errorf("run %q is a path", n.Run)
		}
		dir := t.TempDir()
		if err := n.write(dir); err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(filepath.Join(dir, noteFile))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseNote(again); err != nil {
			t.Errorf("%q is not read again: %v", again, err)
		}
	})
}
