package bundle

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newKey makes a key and reads it from its file.
func newKey(t *testing.T) (*Key, string) {
	t.Helper()
	private, public, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "our.key")
	if err := os.WriteFile(path, private, 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := ReadKey(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := ParsePublicKey(string(public)); err != nil || p.String() != k.Public().String() {
		t.Fatalf("the public key is %s, %v", p, err)
	}
	if p, err := ParsePublicKey(k.Public().String()); err != nil || p.String() != k.Public().String() {
		t.Fatalf("the line is %s, %v", p, err)
	}
	return k, path
}

// filter is the playbooks' verification, as Ansible calls it; nil: this machine has no
// Ansible.
func filter(t *testing.T) func(path, key string) string {
	t.Helper()
	python := filepath.Join(os.Getenv("LINKTRIAL_ANSIBLE"), "bin", "python3")
	if os.Getenv("LINKTRIAL_ANSIBLE") == "" {
		python = "/var/cache/linktrial/ansible/bin/python3"
	}
	if _, err := os.Stat(python); err != nil {
		return nil
	}
	folder, err := filepath.Abs("../playbooks/roles/base/filter_plugins")
	if err != nil {
		t.Fatal(err)
	}
	return func(path, key string) string {
		cmd := exec.Command(python, "-B", "-c", "import sys; sys.path.insert(0, sys.argv[1]); import signature; print(signature.unsigned(sys.argv[2], sys.argv[3]))", folder, path, key)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
}

// What is signed is verified, and nothing else is: by the program, and by the playbooks, which
// verify by themselves.
func TestSignatures(t *testing.T) {
	k, _ := newKey(t)
	other, _ := newKey(t)
	playbook := filter(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file.tar.gz")
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(what, path string, by *Key, words string) {
		t.Helper()
		err := by.Public().Verify(path)
		if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, expected %q", what, err, words)
		}
		if playbook == nil {
			return
		}
		if got := playbook(path, by.Public().String()); (got == "") != (words == "") {
			t.Errorf("%s: the playbook says %q", what, got)
		}
	}
	write(file, "content")
	verify("not signed", file, k, "is not signed")
	if _, err := k.Sign(file); err != nil {
		t.Fatal(err)
	}
	verify("signed", file, k, "")
	verify("by another key", file, other, "expected key "+other.Public().ID())
	write(file, "Content")
	verify("changed", file, k, "changed after it was signed")
	write(file, "content")
	signature, err := os.ReadFile(file + SignatureSuffix)
	if err != nil {
		t.Fatal(err)
	}
	write(file+SignatureSuffix, strings.Replace(string(signature), "file:file", "file:life", 1))
	verify("a changed comment", file, k, "changed after it was signed")
	for _, text := range []string{"", "no signature", "a\nb\nc\nd\n", string(bytes.Repeat([]byte{0xff}, 100))} {
		write(file+SignatureSuffix, text)
		verify("no signature at all", file, k, "no signature of minisign")
	}

	folder := filepath.Join(dir, "bin")
	write(filepath.Join(folder, "linktrial"), "program")
	write(filepath.Join(folder, "drivers", "tcp", "tcp"), "driver")
	verify("a folder that is not signed", folder, k, "is not signed")
	if _, err := k.Sign(folder); err != nil {
		t.Fatal(err)
	}
	verify("a folder", folder, k, "")
	write(filepath.Join(folder, "drivers", "tcp", "tcp"), "another")
	verify("a changed file", folder, k, "drivers/tcp/tcp is not the file that was signed")
	write(filepath.Join(folder, "drivers", "tcp", "tcp"), "driver")
	write(filepath.Join(folder, "drivers", "more", "more"), "another")
	verify("one more", folder, k, "drivers/more/more is not among the signed files")
	if err := os.RemoveAll(filepath.Join(folder, "drivers")); err != nil {
		t.Fatal(err)
	}
	verify("one less", folder, k, "drivers/tcp/tcp is missing")
}

// A bundle that is made again has no signature of the one before.
func TestCreateSigns(t *testing.T) {
	cfg := config(t)
	cfg.Key, _ = newKey(t)
	if _, err := Create(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	public := cfg.Key.Public()
	if err := public.Verify(cfg.Out); err != nil {
		t.Error(err)
	}
	cfg.Key, cfg.Version = nil, "v2"
	if _, err := Create(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := public.Verify(cfg.Out); err == nil || !strings.Contains(err.Error(), "is not signed") {
		t.Errorf("made again: %v", err)
	}
}

// update has apt read a repository as the playbooks have it.
func update(t *testing.T, dir string) (string, error) {
	t.Helper()
	tasks, err := os.ReadFile("../playbooks/roles/base/tasks/bundle.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(tasks), `content: "deb `)
	line, _, found := strings.Cut(line, `\n"`)
	if !found {
		t.Fatal("the playbooks name no source of packages")
	}
	state := t.TempDir()
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(state, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sources := filepath.Join(state, "sources.list")
	if err := os.WriteFile(sources, []byte("deb "+strings.ReplaceAll(line, "{{ base_bundle_dir }}/debian", dir)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("apt-get", "update", "-q", "--error-on=any")
	for _, o := range []string{"Dir::Etc::sourcelist=" + sources, "Dir::Etc::sourceparts=-", "Dir::State::lists=" + filepath.Join(state, "lists"), "Dir::Cache=" + filepath.Join(state, "cache"), "APT::Sandbox::User=root", "Debug::NoLocking=true"} {
		cmd.Args = append(cmd.Args, "-o", o)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// gpgv, which apt uses, accepts the list of packages by the key that is beside it, and no
// other; the key of a bundle's maker is the same each time.
func TestSignedArchive(t *testing.T) {
	k, _ := newKey(t)
	release := func(key *Key, list string) string {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "Packages"), []byte(list), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := signArchive(dir, key, "bookworm", "amd64", time.Unix(1_700_000_000, 0)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	gpgv := func(ring, dir string) (string, error) {
		cmd := exec.Command("gpgv", "--keyring", filepath.Join(ring, archiveFile), "--output", "-", filepath.Join(dir, releaseFile))
		cmd.Env = append(os.Environ(), "LC_ALL=C") // its words are looked for
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	ours, again, unsigned := release(k, "Package: a\n"), release(k, "Package: b\n"), release(nil, "Package: a\n")
	for _, dir := range []string{ours, again, unsigned} {
		out, err := gpgv(dir, dir)
		if err != nil || !strings.Contains(out, "Good signature") || !strings.Contains(out, "Suite: bookworm") {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if out, err := gpgv(ours, again); err != nil {
		t.Errorf("the maker's key has changed: %v\n%s", err, out)
	}
	if out, err := gpgv(unsigned, ours); err == nil {
		t.Errorf("another key: %s", out)
	}
	if out, err := update(t, ours); err != nil {
		t.Errorf("apt: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(ours, releaseFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ours, releaseFile), bytes.Replace(text, []byte("bookworm"), []byte("bookwurm"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := gpgv(ours, ours); err == nil {
		t.Errorf("a changed list: %s", out)
	}
	if out, err := update(t, ours); err == nil {
		t.Errorf("apt takes a changed list: %s", out)
	}
	a, err := os.ReadFile(filepath.Join(release(k, "Package: a\n"), releaseFile))
	if err != nil || !bytes.Equal(a, text) {
		t.Errorf("the same files do not give the same list: %v", err)
	}
}

// TestIsLaptopPackage: an install bundle, whatever people call it, is read to its end.
func TestIsLaptopPackage(t *testing.T) {
	for name, want := range map[string]bool{"/media/USB STICK/linktrial_1.2.0_amd64.deb": true, "linktrial_1.2.0_amd64.tar.gz": true,
		"linktrial.tar.gz": false, "linktrial-bundle.tar.gz": false, "/linktrial_1/bundle.tar.gz": false, "linktrial_1.2.0_amd64.deb.minisig": false} {
		if IsLaptopPackage(name) != want {
			t.Errorf("%s: %v, expected %v", name, !want, want)
		}
	}
}
