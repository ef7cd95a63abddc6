package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// config returns a small bundle without packages, whose program is the test itself.
func config(t *testing.T) Config {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	drivers := t.TempDir()
	for name, text := range map[string]string{"tcp/driver.yaml": "name: tcp\n", "tcp/tcp": "#!/bin/sh\n", "notes.txt": "no driver"} {
		p := filepath.Join(drivers, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return Config{
		Out: filepath.Join(t.TempDir(), "b.tar.gz"), Program: program, Drivers: drivers, Version: "v1",
		Folders:  map[string]fs.FS{"playbooks": fstest.MapFS{"site.yml": {Data: []byte("---\n")}, "roles/a/main.yml": {Data: []byte("---\n")}}},
		Modified: time.Unix(1_700_000_000, 0),
	}
}

func TestCreateAndCheck(t *testing.T) {
	cfg := config(t)
	m, err := Create(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check(cfg.Out)
	if err != nil {
		t.Fatal(err)
	}
	if r.Manifest.Version != "v1" || len(r.Manifest.Drivers) != 1 || r.Manifest.Drivers[0] != "tcp" || m.Architecture == "" {
		t.Errorf("manifest %+v", r.Manifest)
	}
	// README, manifest, checksums, program, driver.yaml, tcp, two of the playbooks.
	if r.Files != 8 {
		t.Errorf("%d files, expected 8", r.Files)
	}
	first, err := os.ReadFile(cfg.Out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(cfg.Out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("the same files gave another bundle")
	}
}

func TestCreateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"no program":        {func(c *Config) { c.Program = filepath.Join(c.Drivers, "gone") }, "no such file"},
		"program is a text": {func(c *Config) { c.Program = filepath.Join(c.Drivers, "tcp/tcp") }, "is no Linux program"},
		"no drivers":        {func(c *Config) { c.Drivers = filepath.Join(c.Drivers, "tcp") }, "there is no driver in"},
		"driver is a link": {func(c *Config) {
			if err := os.Symlink("/etc/passwd", filepath.Join(c.Drivers, "tcp/link")); err != nil {
				panic(err)
			}
		}, "bin/drivers/tcp/link is neither a file nor a folder"},
		"unknown Debian": {func(c *Config) { c.Packages, c.Debian.Suite = []string{"chrony"}, "sarge" }, `Debian "sarge", expected one of bookworm, trixie`},
		"no folder":      {func(c *Config) { c.Out = filepath.Join(c.Drivers, "gone", "b.tar.gz") }, "no such file"},
		"no folder, found before packages are fetched": {func(c *Config) {
			c.Out, c.Packages, c.Debian.Suite = filepath.Join(c.Drivers, "gone", "b.tar.gz"), []string{"chrony"}, "sarge"
		}, "b.tar.gz.part: no such file"},
		"no file": {func(c *Config) { c.Out, c.Packages, c.Debian.Suite = os.DevNull, []string{"chrony"}, "sarge" }, "/dev/null is there and no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t)
			c.change(&cfg)
			_, err := Create(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected %q", err, c.want)
			}
			left, err := filepath.Glob(cfg.Out + "*")
			if cfg.Out == os.DevNull {
				left = left[1:]
			}
			if err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// entry is an entry of an archive.
type entry struct {
	name, text string
	kind       byte
}

func pack(t testing.TB, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.text))}
		if e.kind == tar.TypeSymlink {
			h.Linkname, h.Size, e.text = e.text, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// good returns the entries of a valid bundle, for tests to damage.
func good(t testing.TB) []entry {
	t.Helper()
	m, err := json.Marshal(Manifest{Format: 1, Version: "v1", Architecture: "amd64", Drivers: []string{"tcp"}})
	if err != nil {
		t.Fatal(err)
	}
	files := []entry{
		{name: folder + "/manifest.json", text: string(m)},
		{name: folder + "/bin/linktrial", text: "program"},
		{name: folder + "/bin/drivers/tcp/driver.yaml", text: "name: tcp"},
	}
	return append(files, entry{name: folder + "/SHA256SUMS", text: sumsOf(files)})
}

func sumsOf(files []entry) string {
	var s []sum
	for _, f := range files {
		d := sha256.Sum256([]byte(f.text))
		s = append(s, sum{hex.EncodeToString(d[:]), strings.TrimPrefix(f.name, folder+"/")})
	}
	return string(formatSums(s))
}

func TestCheckRefuses(t *testing.T) {
	// resum corrects the checksums, so that the check finds the fault itself.
	resum := func(e []entry) []entry {
		e = e[:len(e)-1]
		return append(e, entry{name: folder + "/SHA256SUMS", text: sumsOf(e)})
	}
	for name, c := range map[string]struct {
		spoil func([]entry) []entry
		want  string
	}{
		"in order":          {func(e []entry) []entry { return e }, ""},
		"with folders":      {func(e []entry) []entry { return append([]entry{{name: folder + "/", kind: tar.TypeDir}}, e...) }, ""},
		"changed file":      {func(e []entry) []entry { e[1].text = "programme"; return e }, "file bin/linktrial has the checksum"},
		"missing file":      {func(e []entry) []entry { return append(e[:1:1], e[2:]...) }, "file bin/linktrial is missing"},
		"unlisted file":     {func(e []entry) []entry { return append(e, entry{name: folder + "/extra"}) }, "file extra is not in SHA256SUMS"},
		"file twice":        {func(e []entry) []entry { return append(e, e[1]) }, "file bin/linktrial is in it twice"},
		"checksums twice":   {func(e []entry) []entry { return append(e, e[3]) }, "file SHA256SUMS is in it twice"},
		"no checksums":      {func(e []entry) []entry { return e[:3] }, "there is no SHA256SUMS in it"},
		"empty checksums":   {func(e []entry) []entry { e[3].text = ""; return e }, "is not in SHA256SUMS"},
		"checksums garbage": {func(e []entry) []entry { e[3].text = "x"; return e }, "SHA256SUMS:1: expected 64 hex digits"},
		"outside":           {func(e []entry) []entry { return append(e, entry{name: folder + "/../../etc/passwd"}) }, "expected files and folders below"},
		"elsewhere":         {func(e []entry) []entry { return append(e, entry{name: "/etc/passwd"}) }, "expected files and folders below"},
		"link":              {func(e []entry) []entry { return append(e, entry{folder + "/l", "/etc/passwd", tar.TypeSymlink}) }, "expected files and folders below"},
		"no manifest":       {func(e []entry) []entry { return resum(e[1:]) }, "there is no manifest.json in it"},
		"later format":      {func(e []entry) []entry { e[0].text = `{"format":2,"new":true}`; return resum(e) }, "format 2, expected 1"},
		"manifest field":    {func(e []entry) []entry { e[0].text = `{"format":1,"versoin":"x"}`; return resum(e) }, `unknown field "versoin"`},
		"manifest tail":     {func(e []entry) []entry { e[0].text += "{}"; return resum(e) }, "manifest.json:"},
		"promised driver":   {func(e []entry) []entry { return resum(append(e[:2:2], e[3])) }, "manifest.json names bin/drivers/tcp/driver.yaml, which is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := check(bytes.NewReader(pack(t, c.spoil(good(t)))))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, expected %q", err, c.want)
			}
		})
	}
}

// The check fails for a bundle that is cut off anywhere, or has a wrong bit that matters.
func TestCheckFindsDamage(t *testing.T) {
	whole := pack(t, good(t))
	unpacked := func(b []byte) []byte {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil
		}
		out, err := io.ReadAll(z)
		if err != nil {
			return nil
		}
		return out
	}
	plain := unpacked(whole)
	if _, err := check(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if _, err := check(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("cut off after %d of %d bytes, it went through", n, len(whole))
		}
	}
	header := 10 // of gzip: its time, system and flags say nothing about the content
	for n := header; n < len(whole); n++ {
		b := bytes.Clone(whole)
		b[n] ^= 1
		if bytes.Equal(unpacked(b), plain) { // a bit of padding
			continue
		}
		if _, err := check(bytes.NewReader(b)); err == nil {
			t.Fatalf("with bit 0 of byte %d turned, it went through", n)
		}
	}
}

func FuzzCheck(f *testing.F) {
	var plain bytes.Buffer
	z, err := gzip.NewReader(bytes.NewReader(pack(f, good(f))))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := io.Copy(&plain, z); err != nil {
		f.Fatal(err)
	}
	f.Add(plain.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, tarball []byte) {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write(tarball)
		w.Close()
		r, err := check(&b)
		if err == nil && (r.Manifest.Format != Format || r.Files < 2) {
			t.Errorf("in order: %+v", r)
		}
	})
}

func FuzzSums(f *testing.F) {
	f.Add([]byte(sumsOf([]entry{{name: folder + "/a/b", text: "x"}, {name: folder + "/c", text: ""}})))
	f.Add([]byte("x  ../y\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		sums, err := parseSums(b)
		if err != nil {
			return
		}
		var list []sum
		for file, hex := range sums {
			if !clean(file) {
				t.Errorf("went through: %q", file)
			}
			list = append(list, sum{hex, file})
		}
		again, err := parseSums(formatSums(list))
		if err != nil || len(again) != len(sums) {
			t.Errorf("written and read again: %v, %d of %d", err, len(again), len(sums))
		}
	})
}
