package uml

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCachedKernel(t *testing.T) {
	dir := t.TempDir()
	if _, err := CachedKernel(dir); !errors.Is(err, ErrNoKernel) {
		t.Fatalf("an empty cache: %v", err)
	}
	add := func(k Kernel) {
		work := t.TempDir()
		// The cache is filled by renaming, so both are on one file system.
		build, err := os.MkdirTemp(dir, buildPrefix)
		if err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(build, programName)
		if err := os.WriteFile(program, []byte(k.Version), 0o755); err != nil {
			t.Fatal(work, err)
		}
		if _, err := commit(dir, program, k); err != nil {
			t.Fatal(err)
		}
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	add(Kernel{Version: "7.2.1-1", Note: "older", Built: day.AddDate(0, 0, 2)})
	add(Kernel{Version: "7.3.1-1", Note: "newer", Built: day})
	if k, err := CachedKernel(dir); err != nil || k.Version != "7.2.1-1" || k.Note != "older" {
		t.Errorf("the latest build: %+v, %v", k, err)
	}
	add(Kernel{Version: sourceVersion, Built: day})
	k, err := CachedKernel(dir)
	if err != nil || k.Version != sourceVersion {
		t.Errorf("the pinned version: %+v, %v", k, err)
	}
	if b, err := os.ReadFile(k.Path); err != nil || string(b) != sourceVersion {
		t.Errorf("its program: %q, %v", b, err)
	}
	// What a killed build left goes with the next.
	if err := sweep(dir); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, buildPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRefusalNamesMissingTools(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := BuildKernel(t.Context(), BuildConfig{CacheDir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "flex") || !strings.Contains(err.Error(), "scripts/install-deps kernel") {
		t.Errorf("without tools: %v", err)
	}
}

func TestSystemMirror(t *testing.T) {
	for name, tt := range map[string]struct {
		file, text string
		want       mirror
	}{
		"one line": {"sources.list", "# deb http://a/debian x main\ndeb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian/ bookworm main # yes\n", mirror{"http://mirror.example/debian/", "/k.gpg"}},
		"deb822": {"sources.list.d/debian.sources", "Types: deb deb-src\n# a remark\nURIs: http://mirror.example.org/debian\nSuites: bookworm\n bookworm-updates\nComponents: main\nSigned-By: /usr/share/keyrings/x.gpg\n\nTypes: deb\nURIs: http://other/debian\n",
			mirror{"http://mirror.example.org/debian", "/usr/share/keyrings/x.gpg"}},
		"others first":    {"sources.list", "deb http://mirror.example.org/debian-security bookworm-security main\ndeb https://packages.example.org/apt stable main\ndeb http://b/debian bookworm main\n", mirror{uri: "http://b/debian"}},
		"key in the file": {"sources.list.d/a.sources", "Types: deb\nURIs: http://c/debian\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n", mirror{uri: "http://c/debian"}},
		"switched off":    {"sources.list.d/a.sources", "Types: deb\nEnabled: no\nURIs: http://c/debian\n", mirror{}},
		"sources alone":   {"sources.list", "deb-src http://c/debian x main\n", mirror{}},
		"none":            {"sources.list", "", mirror{}},
	} {
		root := t.TempDir()
		file := filepath.Join(root, "etc/apt", tt.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := systemMirror(root)
		if got != tt.want || (err == nil) != (tt.want.uri != "") {
			t.Errorf("%s: %+v, %v; expected %+v", name, got, err, tt.want)
		}
	}
}

func TestChoose(t *testing.T) {
	newer := func(a, b string) int { return strings.Compare(a, b) }
	pinned := candidate{sourcePackage, sourceVersion}
	for name, tt := range map[string]struct {
		all  []candidate
		want candidate
		note bool
	}{
		"pinned":            {[]candidate{{"linux-source-7.3", "9"}, pinned, {sourcePackage, "9"}}, pinned, false},
		"newest of release": {[]candidate{{"linux-source-7.3", "9"}, {sourcePackage, "7.2.1"}, {sourcePackage, "7.2.3"}}, candidate{sourcePackage, "7.2.3"}, true},
		"newest release":    {[]candidate{{"linux-source-6.15", "9"}, {"linux-source-6.16", "1"}, {"linux-source-6.1", "9"}}, candidate{"linux-source-6.16", "1"}, true},
		"too old":           {[]candidate{{"linux-source-6.1", "9"}, {"linux-source-6.14", "9"}}, candidate{}, false},
		"none":              {nil, candidate{}, false},
	} {
		c, note, ok := choose(tt.all, newer)
		if c != tt.want || (note != "") != tt.note || ok != (tt.want != candidate{}) {
			t.Errorf("%s: %+v %q %v", name, c, note, ok)
		}
	}
}

func TestMadison(t *testing.T) {
	said := "linux-source-7.2 | 7.2.12-1~bpo13+1 | http://mirror.example.org/debian trixie-backports/main amd64 Packages\n" +
		"linux-source-7.2 | 7.2.9-1 | http://m/debian sid/main amd64 Packages\nlinux-source | 7 | x Packages\nlinux | 7.2 | x Sources\nnoise\n"
	want := []candidate{{sourcePackage, sourceVersion}, {sourcePackage, "7.2.9-1"}}
	if got := madison(said); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestCheckOptions(t *testing.T) {
	fragment := []byte("# a remark\nCONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n")
	if err := checkOptions(fragment, []byte("CONFIG_A=y\n# CONFIG_B is not set\n")); err == nil || !strings.Contains(err.Error(), "CONFIG_B=y") {
		t.Errorf("a lost option: %v", err)
	}
	if err := checkOptions(fragment, []byte("CONFIG_A=y\nCONFIG_B=y\n")); err != nil {
		t.Error(err)
	}
}

func TestCheckOfTheKernelsOutput(t *testing.T) {
	good := "check time 0.10 1000.12\ncheck random ab\ncheck congestion reno bbr cubic westwood veno vegas radio radio_newrto\ncheck sctp 1\ncheck root read-only\ncheck done"
	if err := checkSaid(good); err != nil {
		t.Error(err)
	}
	for _, change := range [][2]string{
		{"1000.12", "0.12"}, {" bbr", ""}, {"radio_newrto", ""}, {"sctp 1", "sctp 0"}, {"read-only", "writable"}, {"check done", ""}, {"check time", "check"},
	} {
		if err := checkSaid(strings.Replace(good, change[0], change[1], 1)); err == nil {
			t.Errorf("with %q for %q it passes", change[1], change[0])
		}
	}
}

func TestCounter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	var c counter
	h := hold(path)
	if err := h.read(c.take); err != nil || c.ended != 0 {
		t.Fatalf("no journal yet: %d, %v", c.ended, err)
	}
	text := strings.Join([]string{
		`00000000 {"seq":1,"type":"attempt-started"}`, `{"type":"trial-ended"}`,
		`{"type":"attempt-started"}`, `{"type":"attempt-ended","body":{"message":"\"type\":\"trial-ended\""}}`, `{"type":"trial-ended"}`,
		`{"type":"attempt-started"}`, `{"type":"attempt-started"}`, `{"type":"attempt-sta`,
	}, "\n")
	for at := 0; at < len(text); at += 7 { // also in the midst of a word
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text[at:min(at+7, len(text))]); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := h.read(c.take); err != nil {
			t.Fatal(err)
		}
	}
	if c.ended != 2 || c.attempts != 2 {
		t.Errorf("%d trials have ended and %d attempts of the next one have started, expected 2 and 2", c.ended, c.attempts)
	}
}

func FuzzSources(f *testing.F) {
	f.Add([]byte("deb [signed-by=/a] http://m/debian x main\n"))
	f.Add([]byte("Types: deb\nURIs: http://m/debian\n http://n/debian\nSigned-By: /a\n\n"))
	f.Add([]byte("deb [x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, m := range append(oneLineSources(b), deb822Sources(b)...) {
			if m.uri == "" || strings.ContainsAny(m.uri, " \n") || strings.ContainsAny(m.keyring, " \n") {
				t.Errorf("%q", m)
			}
		}
	})
}

func FuzzMadison(f *testing.F) {
	f.Add("linux-source-7.2 | 7.2.12-1~bpo13+1 | http://m x Packages\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range madison(s) {
			if kernelRelease(c.pkg) == [2]int{} || c.version == "" {
				t.Errorf("%+v", c)
			}
		}
	})
}

// FuzzParseKernel: what the cache has of a kernel can be written and is read again.
func FuzzParseKernel(f *testing.F) {
	b, err := json.Marshal(Kernel{Version: "6.1.1", Built: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parseKernel(b)
		if err != nil {
			return
		}
		written, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseKernel(written); err != nil || again.Version != k.Version || !again.Built.Equal(k.Built) {
			t.Fatalf("%+v was %+v: %v", again, k, err)
		}
	})
}

// A clock that is no number did not go on.
func TestCheckSaidNoNumber(t *testing.T) {
	if err := checkSaid("check time NaN NaN\ncheck done\n"); err == nil || !strings.Contains(err.Error(), "made the clock go") {
		t.Fatal(err)
	}
}

// FuzzCheckSaid: a kernel that did not say that the check is done has not passed it.
func FuzzCheckSaid(f *testing.F) {
	f.Add("check time 1 1001.5\ncheck congestion reno cubic bbr westwood veno vegas radio radio_newrto\ncheck sctp 1\ncheck root read-only\ncheck done\n")
	f.Add("check time NaN NaN\ncheck done\n")
	f.Add("Kernel panic - not syncing\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, said string) {
		if checkSaid(said) == nil && !strings.Contains(said, "check done") {
			t.Fatalf("%q passes", said)
		}
	})
}
