package node

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	nodeidentity "linktrial/agents/identity"
	"linktrial/internal/discovery"
	"linktrial/internal/filelock"
)

func TestAddressesAndNames(t *testing.T) {
	for typed, want := range map[string]string{
		"10.0.0.1": "10.0.0.1:7700", "10.0.0.1:80": "10.0.0.1:80", "laptop-a": "laptop-a:7700", "https://laptop-a:7701/": "laptop-a:7701",
		"fe80::1%eth0": "[fe80::1%eth0]:7700", "[fe80::1%eth0]:1": "[fe80::1%eth0]:1", "[::1]": "[::1]:7700",
	} {
		got, err := withPort(typed)
		require.NoError(t, err, typed)
		require.Equal(t, want, got)
	}
	for _, typed := range []string{":7700", "a:b", "a:0", "a:70000", "http://a", "a/b", "a b", "a:1:2", "a@b"} {
		_, err := withPort(typed)
		require.ErrorContains(t, err, "expected HOST or HOST:PORT", typed)
	}

	var j joinCommand
	require.NoError(t, j.complete("/data", false, func() (string, error) { return "laptop-b.local", nil }))
	require.Equal(t, joinCommand{name: "laptop-b", state: "/data/agents/laptop-b"}, j)
	j = joinCommand{name: "two words"}
	require.ErrorContains(t, j.complete("/data", true, nil), `--name: name "two words" of a node`)
	j = joinCommand{}
	require.ErrorContains(t, j.complete("/data", true, nil), `--name: name "" of a node`, "an empty one that was given")
	require.ErrorContains(t, new(joinCommand).complete("/data", false, func() (string, error) { return "", errors.New("none") }), "give one with --name")
}

func TestChoose(t *testing.T) {
	at := func(name, address string) discovery.Found {
		return discovery.Found{Instance: name, Version: "1.4.0", Port: 7700, Addresses: []netip.Addr{netip.MustParseAddr(address)}, Interface: "eth0"}
	}
	one, two := at("a", "10.0.0.1"), at("b", "10.0.0.2")
	var out bytes.Buffer
	_, err := choose(nil, true, nil, &out)
	require.ErrorContains(t, err, "--address HOST")
	got, err := choose([]discovery.Found{one}, false, nil, &out)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1:7700", got)
	_, err = choose([]discovery.Found{one, two}, false, nil, &out)
	require.ErrorContains(t, err, "2 orchestrators with an open code were found: name one of them with --address\n  1  a at 10.0.0.1:7700 (version 1.4.0, by eth0)\n  2  b at 10.0.0.2:7700")
	got, err = choose([]discovery.Found{one, two}, true, strings.NewReader("2\n"), &out)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.2:7700", got)
	for _, typed := range []string{"0\n", "3\n", "b\n", "\n", ""} {
		_, err = choose([]discovery.Found{one, two}, true, strings.NewReader(typed), &out)
		require.ErrorContains(t, err, "which orchestrator", typed)
	}
}

func TestClock(t *testing.T) {
	there := time.Date(2026, 5, 1, 8, 30, 0, 0, time.UTC)
	var set []time.Time
	old := setTime
	t.Cleanup(func() { setTime = old })
	broken := error(nil)
	setTime = func(to time.Time) error { set = append(set, to); return broken }

	year := clock{here: there.AddDate(1, 0, 0), there: there, useless: true}
	const both = "this machine's clock says 2027-05-01 08:30:00 UTC and the orchestrator's 2026-05-01 08:30:00 UTC: it is 365 days ahead of it"
	const command = `sudo date --utc --set "2026-05-01 08:30:00"`
	for name, x := range map[string]struct {
		change func(*clock)
		typed  string
		err    string // empty: it goes on
		prints string
		sets   int
	}{
		"equal":             {func(c *clock) { c.here = there.Add(9 * time.Minute) }, "", "", "", 0},
		"nobody to ask":     {func(*clock) {}, "", both + ": set the one that is wrong, here with --set-clock or '" + command, "", 0},
		"asked, yes":        {func(c *clock) { c.ask, c.root = true, true }, "yes\n", "", "Set this machine's clock to the orchestrator's? [yes/no] This machine's clock is set to", 1},
		"asked, no":         {func(c *clock) { c.ask, c.root = true, true }, "no\n", both, "[yes/no]", 0},
		"asked, no answer":  {func(c *clock) { c.ask, c.root = true, true }, "", both, "[yes/no]", 0},
		"not root":          {func(c *clock) { c.ask = true }, "yes\n", both, "", 0},
		"flag":              {func(c *clock) { c.set, c.root = true, true }, "", "", "is set to", 1},
		"flag, not root":    {func(c *clock) { c.set = true }, "", "setting the clock needs root; run this command with sudo, or first '" + command, "", 0},
		"hours: it goes on": {func(c *clock) { c.here, c.useless = there.Add(5*time.Hour), false }, "", "", "Warning: this machine's clock says", 0},
	} {
		set = nil
		c := year
		x.change(&c)
		var out bytes.Buffer
		err := c.check(strings.NewReader(x.typed), &out)
		if x.err == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, x.err, name)
		}
		require.Contains(t, out.String(), x.prints, name)
		require.Len(t, set, x.sets, name)
	}
	broken = errors.New("no such right")
	c := year
	c.set, c.root = true, true
	require.ErrorContains(t, c.check(nil, new(bytes.Buffer)), "set the clock: no such right; try '"+command)
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range all {
		if f.IsDir() {
			out[f.Name()] = "folder"
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		out[f.Name()] = string(b)
	}
	return out
}

func TestPutInPlace(t *testing.T) {
	base := t.TempDir()
	from, to := filepath.Join(base, "client.joining"), filepath.Join(base, "client")
	files := map[string]string{nodeidentity.File: "new identity", "enrolled-keys": "new keys"}
	write(t, from, files)
	require.NoError(t, putInPlace(from, to))
	require.Equal(t, files, read(t, to), "there was no state folder")

	before := map[string]string{nodeidentity.File: "old identity", "enrolled-keys": "old keys", "folder-id": "id"}
	write(t, to, before)
	write(t, from, files)
	require.NoError(t, putInPlace(from, to))
	require.Equal(t, map[string]string{nodeidentity.File: "new identity", "enrolled-keys": "new keys", "folder-id": "id"}, read(t, to))

	// The last file cannot be moved: all is as before.
	for _, without := range []string{"", "enrolled-keys"} {
		require.NoError(t, os.RemoveAll(from))
		require.NoError(t, os.RemoveAll(to))
		write(t, to, before)
		if without != "" {
			require.NoError(t, os.Remove(filepath.Join(to, without)))
		}
		require.NoError(t, os.Remove(filepath.Join(to, nodeidentity.File)))
		require.NoError(t, os.Mkdir(filepath.Join(to, nodeidentity.File), 0o755))
		was := read(t, to)
		write(t, from, files)
		require.ErrorContains(t, putInPlace(from, to), "state folder: ")
		require.Equal(t, was, read(t, to))
	}
}

func TestFree(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, free(filepath.Join(dir, "none")))
	require.NoError(t, free(dir))
	f, err := os.Create(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, free(dir))
	require.NoError(t, filelock.TryLock(f, filelock.Exclusive))
	require.ErrorContains(t, free(dir), "an agent works in "+dir+": stop it")
}

func TestInterfaces(t *testing.T) {
	eth, err := net.InterfaceByName("lo")
	require.NoError(t, err)
	radio := net.Interface{Name: "wlan0"}
	var j joinCommand
	require.False(t, j.unused(*eth))
	j.interfaces = []string{"lo"}
	require.False(t, j.unused(*eth))
	require.True(t, j.unused(radio))
	j.interfaces = []string{"lo", "none7"}
	_, err = j.search(t.Context())
	require.ErrorContains(t, err, `--interface "none7", expected an interface of this machine`)
}
