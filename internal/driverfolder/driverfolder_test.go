package driverfolder

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func driver(t *testing.T, parent, name string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Manifest), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFind(t *testing.T) {
	mine, shipped := t.TempDir(), t.TempDir()
	own, tcp := driver(t, mine, "own"), driver(t, mine, "tcp")
	driver(t, shipped, "tcp")
	udt := driver(t, shipped, "udt")
	if err := os.MkdirAll(filepath.Join(mine, "udt", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	list := Join(mine, shipped)
	for name, want := range map[string]string{"own": own, "tcp": tcp, "udt": udt, "none": ""} {
		if dir, found := Find(list, name); dir != want || found != (want != "") {
			t.Errorf("%s: %q, expected %q", name, dir, want)
		}
	}
	names, err := Names(list)
	if err != nil || !slices.Equal(names, []string{"own", "tcp", "udt"}) {
		t.Errorf("names %q, %v", names, err)
	}
	if _, err := Names(Join(mine, filepath.Join(mine, "none"))); err == nil || !strings.Contains(err.Error(), "folder of drivers") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestLists(t *testing.T) {
	if got := Join("/a", "/b:/a", "", "/c:"); got != "/a:/b:/c" {
		t.Errorf("joined %q", got)
	}
	for list, want := range map[string]string{"": "", "/a": "/a", "/a:/b": "/a and /b", "/a:/b:/c": "/a, /b and /c"} {
		if got := Shown(list); got != want {
			t.Errorf("%q is shown as %q, expected %q", list, got, want)
		}
	}
	if got, err := Abs("a:/b"); err != nil || !strings.HasSuffix(got, "/a:/b") || !filepath.IsAbs(got) {
		t.Errorf("absolute %q, %v", got, err)
	}
}
