package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRecords(t *testing.T) {
	whole := `{"group":"drivers","name":"TCP","outcome":"passed","figures":["1"]}` + "\n" + string(ExitLine(3, "6.1.0"))
	records, exit, err := parseRecords([]byte(whole))
	if err != nil || len(records) != 1 || records[0].Name != "TCP" || exit == nil || *exit.Exit != 3 || exit.Kernel != "6.1.0" {
		t.Errorf("%+v, %+v, %v", records, exit, err)
	}
	// A machine that ended in the middle of a line, and one that ended before the last.
	for _, cut := range []string{whole[:20], whole[:80]} {
		if records, exit, err := parseRecords([]byte(cut)); exit != nil || err == nil {
			t.Errorf("%q: %+v, %+v, %v", cut, records, exit, err)
		}
	}
	if records, exit, err := parseRecords([]byte(whole[:strings.Index(whole, "\n")+1])); exit != nil || err != nil || len(records) != 1 {
		t.Errorf("%+v, %+v, %v", records, exit, err)
	}
}

// cpio reads what the archive is made of.
func TestArchive(t *testing.T) {
	if _, err := exec.LookPath("cpio"); err != nil {
		t.Skip("cpio is not installed (scripts/install-deps kernel)")
	}
	var b bytes.Buffer
	files := distinct([]File{
		{Name: "/lib/x", Content: []byte("hello")},
		{Name: "/init", Content: []byte("1"), Executable: true},
		{Name: "/lib/x", Content: []byte("another")},
		{Name: "/lib/deep/er/y", Content: bytes.Repeat([]byte("z"), 5001)},
	})
	if err := writeArchive(&b, files); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("cpio", "--extract", "--make-directories", "--quiet", "--nonmatching", "dev/*")
	cmd.Dir, cmd.Stdin = dir, &b
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cpio: %v: %s", err, out)
	}
	for name, want := range map[string]string{"lib/x": "hello", "init": "1", "lib/deep/er/y": strings.Repeat("z", 5001)} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
	if st, err := os.Stat(filepath.Join(dir, "init")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("init: %v, %v", st, err)
	}
	if err := writeArchive(&b, []File{{Name: "/a", From: filepath.Join(dir, "absent")}}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/a") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestPackages(t *testing.T) {
	for name, want := range map[string]bool{
		"linux-image-6.1.0-56-cloud-amd64":               true,
		"linux-image-6.1.0-56-cloud-amd64-unsigned":      false,
		"linux-image-6.1.0-56-amd64":                     false,
		"linux-image-6.12.117+deb12-cloud-amd64":         false,
		"linux-image-6.1.0-56-cloud-amd64-dbg":           false,
		"linux-image-6.10.11+bpo-cloud-amd64":            false,
		"linux-headers-6.1.0-56-cloud-amd64":             false,
		"linux-image-cloud-amd64":                        false,
		"linux-image-6.1-cloud-amd64":                    false,
		"linux-image-6.1.0-0.deb11.7-cloud-amd64":        true,
		"linux-image-6.1.0-56-cloud-amd64 linux-image-6": false,
	} {
		if got := packageName("6.1").MatchString(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	names := []string{"linux-image-6.12.99+deb12-cloud-amd64", "linux-image-6.12.117+deb12-cloud-amd64", "linux-image-6.12.101+deb12-cloud-amd64"}
	if got := slices.MaxFunc(names, natural); got != names[1] {
		t.Errorf("the newest is %s", got)
	}
}

// unpacked puts an unpacked package into a cache, with or without its image.
func unpacked(t *testing.T, cache, name string, whole bool) {
	t.Helper()
	pkg, _, _ := strings.Cut(name, "_")
	own := strings.TrimPrefix(pkg, "linux-image-")
	if err := os.MkdirAll(filepath.Join(cache, name, "usr/lib/modules", own, "kernel"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(cache, name, "boot"), 0o755); err != nil {
		t.Fatal(err)
	}
	if whole {
		if err := os.WriteFile(filepath.Join(cache, name, "boot", "vmlinuz-"+own), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCache(t *testing.T) {
	cache := t.TempDir()
	if k, err := cached(filepath.Join(cache, "absent"), "6.12"); k != nil || err != nil {
		t.Errorf("no cache: %+v, %v", k, err)
	}
	unpacked(t, cache, "linux-image-6.12.9+deb12-cloud-amd64_6.12.9-1", true)
	unpacked(t, cache, "linux-image-6.12.10+deb12-cloud-amd64_6.12.10-1", true)
	unpacked(t, cache, "linux-image-6.1.0-9-cloud-amd64_6.1.9-1", false)
	k, err := cached(cache, "6.12")
	if err != nil || k.Package != "linux-image-6.12.10+deb12-cloud-amd64" || k.Version != "6.12.10-1" || !exists(k.Image) || !exists(k.Modules) {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := cached(cache, "6.1"); err == nil || !strings.Contains(err.Error(), "remove this folder") {
		t.Errorf("a folder without an image: %v", err)
	}
}

func TestModules(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "kernel", "net"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"modules.builtin": "kernel/net/tcp-cubic.ko\n", "kernel/net/broken.ko": "no module", "kernel/net/packed.ko.zst": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := readModules(dir)
	if err != nil {
		t.Fatal(err)
	}
	if files, err := s.files([]string{"tcp_cubic"}, nil); err != nil || len(files) != 1 || files[0].Name != ModuleOrder {
		t.Errorf("a module that is built in: %+v, %v", files, err)
	}
	if _, err := s.files(nil, []string{"tcp_radio"}); !errors.Is(err, ErrNoModule) {
		t.Errorf("no such module: %v", err)
	}
	for name, want := range map[string]string{"broken": "module broken", "packed": "packed in a way"} {
		if _, err := s.files([]string{name}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestProcessorTime(t *testing.T) {
	before := processorTime(os.Getpid())
	for begin := time.Now(); processorTime(os.Getpid()) < before+30*time.Millisecond; {
		if time.Since(begin) > time.Minute {
			t.Fatal("this process computes and uses no processor time")
		}
	}
	if got := processorTime(1 << 30); got != 0 {
		t.Errorf("of no process: %s", got)
	}
}

func TestConsoleEnd(t *testing.T) {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "line %d\r\n\n", i)
	}
	if end := consoleEnd([]byte(b.String())); !strings.HasPrefix(end, "    line 25\n") || !strings.HasSuffix(end, "line 39") {
		t.Errorf("%s", end)
	}
	with := strings.Replace(b.String(), "line 10\r", "[1.0] Kernel panic - not syncing: x\r", 1)
	if end := consoleEnd([]byte(with)); !strings.HasPrefix(end, "    line 7\n") || !strings.HasSuffix(end, "line 21") {
		t.Errorf("%s", end)
	}
	if end := consoleEnd(nil); end != "" {
		t.Errorf("of nothing: %q", end)
	}
}

// What is missing gives one error that says what to do.
func TestDownloadFails(t *testing.T) {
	if _, err := exec.LookPath("apt-cache"); err != nil {
		t.Skip("this is no Debian")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("interrupted"))
	if k, err := FindKernel(ctx, t.TempDir(), "6.1"); err == nil {
		t.Errorf("an interrupted download gave %+v", k)
	}
}
