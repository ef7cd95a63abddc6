package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licenseclassifier/v2/assets"
)

// The gate: every dependency of a program or page has an allowed licence, and is listed.
func TestLicencesOfThisModule(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := licences(t.Context(), root, true); err != nil {
		t.Error(err)
	}
	texts, err := os.ReadFile(filepath.Join(root, textsFile))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(root, listFile))
	if err != nil {
		t.Fatal(err)
	}
	for name := range parseList(list) {
		if !bytes.Contains(texts, []byte("\n"+name+"\n")) && !bytes.Contains(texts, []byte("\n"+name+" (")) {
			t.Errorf("%s is not in %s: go run ./tools/supply licences", name, textsFile)
		}
	}
}

// A module with an unknown licence, or with one that is not allowed, is refused by its name.
func TestJudged(t *testing.T) {
	p, err := parsePolicy(policyText)
	if err != nil {
		t.Fatal(err)
	}
	module := func(files map[string]string) []dependency {
		t.Helper()
		dirs := []string{t.TempDir()}
		for name, text := range files {
			file := filepath.Join(dirs[0], name)
			if dir := filepath.Dir(file); !slices.Contains(dirs, dir) {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				dirs = append(dirs, dir)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return []dependency{{kind: kindGo, name: "example.com/new", version: "v1.0.0", dirs: dirs}}
	}
	text := func(name string) string {
		t.Helper()
		b, err := assets.ReadLicenseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for what, c := range map[string]struct {
		files map[string]string
		want  string // of the error; empty: allowed
	}{
		"MIT":                  {map[string]string{"LICENSE": "Copyright (c) 2026 Somebody\n\n" + text("License/MIT/pristine.txt")}, ""},
		"two":                  {map[string]string{"LICENSE": text("License/Apache-2.0/pristine.txt"), "LICENSE-MIT.txt": text("License/MIT/pristine.txt")}, ""},
		"none":                 {map[string]string{"README": "free for everybody"}, "go example.com/new v1.0.0: its licence is not known"},
		"of its own":           {map[string]string{"LICENSE": "You may use this on Sundays.\n"}, "its licence is not known"},
		"one allowed, one not": {map[string]string{"LICENSE": text("License/MIT/pristine.txt"), "COPYING": "You may use this on Sundays.\n"}, "its licence is not known"},
		"GPL by its header":    {map[string]string{"LICENSE": text("License/MIT/pristine.txt") + "\nSome files:\n\n" + text("Header/GPL-3.0/header.txt")}, "its licence is GPL-3.0 AND MIT, which"},
		"a folder's own":       {map[string]string{"LICENSE": text("License/MIT/pristine.txt"), "list/LICENSE_list": text("License/GPL-3.0/license.txt")}, "its licence is GPL-3.0 AND MIT, which"},
		"GPL":                  {map[string]string{"COPYING": text("License/GPL-3.0/license.txt")}, "its licence is GPL-3.0, which tools/supply/policy.txt does not allow"},
		"AGPL":                 {map[string]string{"LICENSE": text("License/AGPL-3.0/license.txt")}, "does not allow"},
	} {
		_, err := judged(p, module(c.files))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", what, err, c.want)
		}
	}
	if _, err := judged(p, []dependency{{kind: kindNPM, name: "new", version: "1.0.0", licence: "SSPL-1.0"}}); err == nil {
		t.Error("a package with a licence that is not allowed passes")
	}
	p.stated["go example.com/new"] = "MIT"
	if all, err := judged(p, module(nil)); err != nil || all[0].licence != "MIT" {
		t.Errorf("a stated licence: %v", err)
	}
}

func TestPermits(t *testing.T) {
	p := policy{allowed: map[string]bool{"MIT": true, "ISC": true}}
	for expression, want := range map[string]bool{
		"MIT": true, "GPL-2.0": false, "MIT OR GPL-2.0": true, "(MIT OR GPL-2.0)": true, "MIT AND GPL-2.0": false, "(MIT AND ISC)": true,
		"GPL-2.0 OR (MIT AND ISC)": true, "(GPL-2.0 OR MIT) AND ISC": true, "(GPL-2.0 OR MIT) AND SSPL-1.0": false, "": false, "SEE LICENSE IN x": false,
	} {
		if got := p.permits(expression); got != want {
			t.Errorf("%q: %t", expression, got)
		}
	}
	if _, err := parsePolicy("allow\n"); err == nil || !strings.Contains(err.Error(), "policy.txt:1:") {
		t.Errorf("%v", err)
	}
}

const lock = `{"lockfileVersion": 3, "packages": {
	"": {"dependencies": {"a": "1"}, "devDependencies": {"tool": "1"}},
	"node_modules/a": {"version": "1.0.0", "license": "MIT", "resolved": "https://packages.example/a.tgz", "integrity": "sha512-%[1]s", "dependencies": {"@s/b": "1"}},
	"node_modules/@s/b": {"version": "2.0.0", "license": "ISC", "resolved": "https://elsewhere.example/b.tgz", "integrity": "sha512-%[1]s"},
	"node_modules/a/node_modules/@s/b": {"version": "1.0.0", "license": "ISC", "resolved": "https://packages.example/b.tgz", "integrity": "sha1-x"},
	"node_modules/tool": {"version": "1.0.0", "dev": true, "license": "GPL-3.0", "resolved": "https://packages.example/t.tgz", "integrity": "sha512-x"}}}`

func TestParseLock(t *testing.T) {
	text := []byte(strings.ReplaceAll(lock, "%[1]s", strings.Repeat("A", 86)+"=="))
	all, err := parseLock(text, "web")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		got = append(got, d.String()+" "+d.version+" "+d.licence)
	}
	if strings.Join(got, "; ") != "npm @s/b 1.0.0 ISC; npm a 1.0.0 MIT" || len(all[1].sha512) != 128 {
		t.Errorf("%q", got)
	}
	n, bad, err := unpinned(text)
	if n, bad, err := unpinned([]byte(`{"packages": {"": {}, "node_modules/x": {"integrity": "sha512-A"}, "node_modules/y": {"integrity": "sha1-A"}}}`)); err != nil || n != 2 || strings.Join(bad, " ") != "node_modules/y" {
		t.Errorf("without places: %d %q %v", n, bad, err)
	}
	if err != nil || n != 4 || strings.Join(bad, " ") != "node_modules/@s/b node_modules/a/node_modules/@s/b" {
		t.Errorf("%d %q %v", n, bad, err)
	}
	if _, err := parseLock([]byte(`{"lockfileVersion": 3, "packages": {"": {"dependencies": {"a": "1"}}}}`), "web"); err == nil {
		t.Error("a package that is missing passes")
	}
}

// A bill names what the linker wrote into a program, each once and with its licence, and can be
// read again.
func TestBillOfAProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, out := filepath.Join("..", ".."), t.TempDir()
	if err := writeBOMs(t.Context(), root, out, "v1", []string{self}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(out, filepath.Base(self)+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var doc cdx.BOM
	if err := cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if c := doc.Metadata.Component; c.Version != "v1" || c.Type != cdx.ComponentTypeApplication || len(*c.Hashes) != 1 {
		t.Errorf("%+v", c)
	}
	refs := map[string]bool{}
	for _, c := range *doc.Components {
		if refs[c.BOMRef] {
			t.Errorf("%s is in it twice", c.BOMRef)
		}
		refs[c.BOMRef] = true
		if c.Name == "github.com/CycloneDX/cyclonedx-go" && (c.Version == "" || c.PackageURL != "pkg:golang/github.com/cyclonedx/cyclonedx-go@"+c.Version) {
			t.Errorf("%+v", c)
		}
		if c.Name == "std" && (c.Licenses == nil || (*c.Licenses)[0].License.ID != "BSD-3-Clause") {
			t.Errorf("%+v", c.Licenses)
		}
	}
	if len(refs) < 3 {
		t.Errorf("%d components", len(refs))
	}
	if err := writeBOMs(t.Context(), root, out, "v1", []string{"main_test.go"}); err == nil || !strings.Contains(err.Error(), "expected a Linux program") {
		t.Errorf("%v", err)
	}
}

// What an image or a bundle is made of: our programs, and the packages that are installed.
func TestContents(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct {
		name string
		mode int64
		text []byte
	}{
		{"linktrial", 0o755, program}, {"drivers/tcp/tcp", 0o755, program}, {"drivers/tcp/driver.yaml", 0o644, []byte("name: tcp")}, {"usr/bin/perl", 0o755, []byte("Debian's")}, {"start", 0o755, []byte("#!/bin/sh")},
		{"var/lib/dpkg/status", 0o644, []byte("Package: libc6\nStatus: install ok installed\nVersion: 2.41-12\nDescription: one\n more: of it\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n")},
	} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	list, _, err := (&bills{version: "v1"}).contents(&b, "", "var/lib/dpkg/status")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	refs := map[string]bool{}
	for _, c := range list {
		got = append(got, c.BOMRef)
		if c.Components != nil {
			for _, x := range *c.Components {
				if refs[x.BOMRef] {
					t.Errorf("%s is in it twice", x.BOMRef)
				}
				refs[x.BOMRef] = true
			}
		}
	}
	if strings.Join(got, " ") != "program:linktrial program:tcp file:start pkg:deb/debian/libc6@2.41-12" {
		t.Errorf("%q", got)
	}
}

// govulncheck's answers: nothing, something, or none, which is not taken for nothing.
func TestGoVulnerabilities(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("linktrial", "")
	write("scripts/go-tool", "#!/bin/sh\necho "+root+"/govulncheck\n")
	for _, c := range []struct{ script, result, detail string }{
		{"echo 'No vulnerabilities found.'", inOrder, "nothing is known"},
		{"echo 'Vulnerability #1: GO-2026-1'; exit 3", found, "Vulnerability #1: GO-2026-1"},
		{"echo 'no such host' >&2; exit 1", notChecked, "no such host"},
		{"echo 'Vulnerability #1'; kill -9 $$", notChecked, "killed"},
	} {
		write("govulncheck", "#!/bin/sh\n"+c.script+"\n")
		if f := goVulnerabilities(t.Context(), root, root); f.result != c.result || !strings.Contains(f.detail, c.detail) {
			t.Errorf("%s: %+v", c.script, f)
		}
	}
}

// TestWheel: the bill of the typesetter has what the wheel's own one says.
func TestWheel(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "typst")
	sboms := filepath.Join(folder, "typst-1.2.3.dist-info", "sboms")
	if err := os.MkdirAll(sboms, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := (&bills{}).wheel(folder); err == nil || !strings.Contains(err.Error(), "make typst") {
		t.Errorf("a wheel without a bill: %v, expected what to do", err)
	}
	own := `{"bomFormat": "CycloneDX", "specVersion": "1.5", "components": [{"type": "library", "name": "rayon", "version": "1.11.0"}]}`
	if err := os.WriteFile(filepath.Join(sboms, "typst-py.cyclonedx.json"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	b := bills{licences: map[string]string{"py typst": "Apache-2.0"}}
	c, err := b.component(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if c.PackageURL != "pkg:pypi/typst@1.2.3" || c.Licenses == nil || len(*c.Components) != 1 || (*c.Components)[0].Name != "rayon" {
		t.Errorf("the bill is %+v", c)
	}
}
