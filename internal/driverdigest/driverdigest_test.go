package driverdigest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "driver.yaml", "name: x\n", 0o644)
	write(t, dir, "x", "program", 0o755)
	write(t, dir, "lib/a", "1", 0o644)
	write(t, dir, "lib.d", "2", 0o644)
	if err := os.Symlink("lib/a", filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, dir, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func digest(t *testing.T, dir string) Digest {
	t.Helper()
	f, err := OfFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f.Digest
}

// known is the digest of folder(), made with sha256sum and printf: approvals of
// an earlier version must hold.
const known = "sha256:df5a795f772b27a2e50684f40869109fa613ac10be943eec35997c124e540dd6"

func TestFolder(t *testing.T) {
	dir := folder(t)
	f, err := OfFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if f.Digest != known {
		t.Errorf("digest %s, expected %s", f.Digest, known)
	}
	// SHA-256 of "program", by sha256sum.
	if got := f.Files["x"]; got != "1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8" {
		t.Errorf("hash of the program: %s", got)
	}
	if d := digest(t, dir+"/"); d != f.Digest {
		t.Errorf("with a slash at the end: %s", d)
	}
	// A copy elsewhere, by another user at another time, is the same driver.
	other := folder(t)
	if err := os.Mkdir(filepath.Join(other, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, other, "x", "program", 0o711)
	if d := digest(t, other); d != f.Digest {
		t.Errorf("of a copy: %s", d)
	}
}

func TestEveryChangeChangesTheDigest(t *testing.T) {
	seen := map[Digest]string{digest(t, folder(t)): "unchanged"}
	for name, change := range map[string]func(dir string) error{
		"a byte": func(dir string) error { return os.WriteFile(filepath.Join(dir, "x"), []byte("progran"), 0o755) },
		"the manifest": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "driver.yaml"), []byte("name: y\n"), 0o644)
		},
		"a file more":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "y"), nil, 0o644) },
		"a file less":    func(dir string) error { return os.Remove(filepath.Join(dir, "lib.d")) },
		"another name":   func(dir string) error { return os.Rename(filepath.Join(dir, "lib.d"), filepath.Join(dir, "lib.e")) },
		"moved":          func(dir string) error { return os.Rename(filepath.Join(dir, "lib.d"), filepath.Join(dir, "lib", "d")) },
		"executable":     func(dir string) error { return os.Chmod(filepath.Join(dir, "lib.d"), 0o755) },
		"not executable": func(dir string) error { return os.Chmod(filepath.Join(dir, "x"), 0o644) },
		"hidden":         func(dir string) error { return os.WriteFile(filepath.Join(dir, ".so"), nil, 0o644) },
		"a link elsewhere": func(dir string) error {
			os.Remove(filepath.Join(dir, "a"))
			return os.Symlink("lib.d", filepath.Join(dir, "a"))
		},
		"a link's file": func(dir string) error {
			os.Remove(filepath.Join(dir, "a"))
			return os.WriteFile(filepath.Join(dir, "a"), []byte("lib/a"), 0o644)
		},
		// A name that tries to look like two lines of the list.
		"a line in a name": func(dir string) error {
			return os.Rename(filepath.Join(dir, "lib.d"), filepath.Join(dir, "l\nfile 0644 x"))
		},
	} {
		dir := folder(t)
		var c Cache
		before, err := c.Folder(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		d := digest(t, dir)
		if other, same := seen[d]; same {
			t.Errorf("%s: the digest is that of %s", name, other)
		}
		seen[d] = name
		if after, err := c.Folder(dir); err != nil || after.Digest != d || after.Digest == before.Digest {
			t.Errorf("%s: the cache says %v, %v, expected %s", name, after, err, d)
		}
	}
}

// A file of the same size whose modification time was set back is still seen.
func TestCacheSeesChangeWithSameSizeAndTime(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "x")
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var c Cache
	before, err := c.Folder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Folder(dir); err != nil || again != before {
		t.Errorf("an unchanged folder was read again: %v", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("Program")
	f.Close()
	if err := os.Chtimes(path, st.ModTime(), st.ModTime()); err != nil {
		t.Fatal(err)
	}
	after, err := c.Folder(dir)
	if err != nil || after.Digest == before.Digest {
		t.Errorf("the change is not seen: %v", err)
	}
}

func TestFolderRefused(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"absolute link": {func(dir string) error { return os.Symlink("/bin/sh", filepath.Join(dir, "sh")) }, "outside the folder"},
		"link upwards":  {func(dir string) error { return os.Symlink("../x", filepath.Join(dir, "sh")) }, "outside the folder"},
		"link around":   {func(dir string) error { return os.Symlink("../../x", filepath.Join(dir, "lib", "y")) }, "outside the folder"},
		// By its text the second link stays inside; with the first link followed it does not.
		"link over a link": {func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, "p", "q"), 0o755), os.Symlink("../../lib", filepath.Join(dir, "p", "q", "d")),
				os.Symlink("d/../../"+filepath.Base(dir)+"/..", filepath.Join(dir, "p", "q", "e")))
		}, "outside the folder"},
		"pipe": {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "p"), 0o644) }, "neither a file nor a link"},
	} {
		dir := folder(t)
		if err := c.make(dir); err != nil {
			t.Fatal(err)
		}
		for _, f := range []func(string) (*Folder, error){OfFolder, (&Cache{}).Folder} {
			if _, err := f(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, expected an error with %q", name, err, c.want)
			}
		}
	}
	if _, err := OfFolder(t.TempDir()); err == nil || !strings.Contains(err.Error(), "nothing in") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := OfFolder(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that does not exist has a digest")
	}
}

func TestParse(t *testing.T) {
	hex := strings.Repeat("0a", 32)
	for text, ok := range map[string]bool{
		"sha256:" + hex: true, "image:sha256:" + hex: true,
		"": false, hex: false, "sha256:": false, "sha256:" + hex[1:]: false, "sha256:" + hex + "00": false, "sha256:" + strings.ToUpper(hex): false,
		"sha512:" + hex: false, "image:" + hex: false, "sha256:image:sha256:" + hex: false, " sha256:" + hex: false, "sha256:" + hex + "\n": false,
	} {
		d, err := Parse(text)
		if (err == nil) != ok || ok && string(d) != text {
			t.Errorf("%q: %q, %v", text, d, err)
		}
	}
	if d, err := OfImage("sha256:" + hex); err != nil || string(d) != "image:sha256:"+hex {
		t.Errorf("of an image: %s, %v", d, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("sha256:" + strings.Repeat("0a", 32))
	f.Add("image:sha256:" + strings.Repeat("0a", 32))
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s)
		if err == nil && (string(d) != s || len(s) != 71 && len(s) != 77) {
			t.Fatalf("%q is taken as %q", s, d)
		}
	})
}

// listed makes a driver whose manifest names its program and a folder, with other
// files beside them.
func listed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "driver.yaml", "name: x\nfiles: [./x, lib]\n", 0o644)
	write(t, dir, "x", "program", 0o755)
	write(t, dir, "lib/a", "1", 0o644)
	return dir
}

// TestListed: with a list, what a program writes beside itself is no other driver,
// and every change of what the list names is.
func TestListed(t *testing.T) {
	dir := listed(t)
	before := digest(t, dir)
	write(t, dir, "cache/x", "written at run time", 0o644)
	write(t, dir, "run.log", "log", 0o644)
	write(t, dir, "lib.d/a", "not of lib", 0o644)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if after := digest(t, dir); after != before {
		t.Errorf("files that the list does not name change the digest")
	}
	for name, change := range map[string]func(dir string){
		"program":  func(dir string) { write(t, dir, "x", "other", 0o755) },
		"mode":     func(dir string) { write(t, dir, "x", "program", 0o644) },
		"module":   func(dir string) { write(t, dir, "lib/a", "2", 0o644) },
		"addition": func(dir string) { write(t, dir, "lib/__pycache__/a.pyc", "compiled", 0o644) },
		"list":     func(dir string) { write(t, dir, "driver.yaml", "name: x\nfiles: [lib, x]\n", 0o644) },
		"no list":  func(dir string) { write(t, dir, "driver.yaml", "name: x\n", 0o644) },
	} {
		dir := listed(t)
		change(dir)
		if after := digest(t, dir); after == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
}

// TestListRefused: a list that leaves open what the digest covers.
func TestListRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"not there": {func(dir string) error { return os.Remove(filepath.Join(dir, "x")) }, "names x, which is not in"},
		"link to what is not named": {func(dir string) error {
			return os.Symlink("../elsewhere", filepath.Join(dir, "lib/link"))
		}, "which the list files of driver.yaml does not name"},
		"compiled": {func(dir string) error {
			write(t, dir, "__pycache__/x.pyc", "compiled", 0o644)
			return nil
		}, "__pycache__/x.pyc would be executed"},
		"link by a link": {func(dir string) error {
			write(t, dir, "elsewhere", "program", 0o755)
			return errors.Join(os.Symlink("../elsewhere", filepath.Join(dir, "lib/one")), os.Symlink("one", filepath.Join(dir, "lib/two")))
		}, "does not name"},
	} {
		dir := listed(t)
		if err := c.change(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := OfFolder(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected one with %q", name, err, c.want)
		}
	}
}

// TestNewest: the file that changed last is named.
func TestNewest(t *testing.T) {
	dir := folder(t)
	write(t, dir, "__pycache__/x.pyc", "compiled", 0o644)
	f, err := OfFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if f.Newest != "__pycache__/x.pyc" || f.NewestAt.IsZero() {
		t.Errorf("newest %q at %s", f.Newest, f.NewestAt)
	}
}
