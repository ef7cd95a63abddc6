package bundle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// engineOf has the images of a folder: each file is named for an image, with / as _, and
// has its identity. It answers docker image inspect as docker does.
func engineOf(t *testing.T, images map[string]string) (set func(name, id string)) {
	t.Helper()
	dir := t.TempDir()
	set = func(name, id string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, "/", "_")), []byte(id+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, id := range images {
		set(name, id)
	}
	const script = `#!/bin/sh
[ "$1 $2 $3 $4 $5" = "image inspect --format {{.Id}} --" ] || { echo "unexpected: $*" >&2; exit 64; }
cat "$(dirname "$0")/$(echo "$6" | tr / _)" 2>/dev/null || { echo "Error: No such image: $6" >&2; exit 1; }
`
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return set
}

// An image that is not the one that was signed is found, whichever way it came to the
// machine and whatever its name says.
func TestSignedImages(t *testing.T) {
	k, _ := newKey(t)
	other, _ := newKey(t)
	tcp, agent := "sha256:"+strings.Repeat("1a", 32), "sha256:"+strings.Repeat("2b", 32)
	set := engineOf(t, map[string]string{"linktrial/tcp:latest": tcp, "linktrial/agent:v1": agent, "odd": "md5:00"})
	list := filepath.Join(t.TempDir(), "images.txt")
	signature, err := k.SignImages(t.Context(), []string{"linktrial/tcp:latest", "linktrial/agent:v1"}, list)
	if err != nil || signature != list+SignatureSuffix {
		t.Fatalf("%s, %v", signature, err)
	}
	images, err := k.Public().VerifyImages(t.Context(), list)
	if want := []Image{{Name: "linktrial/agent:v1", ID: agent}, {Name: "linktrial/tcp:latest", ID: tcp}}; err != nil || !slices.Equal(images, want) {
		t.Errorf("%v, %v", images, err)
	}
	refused := func(why string, key PublicKey, words string) {
		t.Helper()
		if _, err := key.VerifyImages(t.Context(), list); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", why, err)
		}
	}
	refused("another key", other.Public(), "expected key "+other.Public().ID())
	set("linktrial/tcp:latest", agent)
	refused("another image under the name", k.Public(), "image linktrial/tcp:latest is "+agent+" on this machine, and "+tcp+" was signed")
	set("linktrial/tcp:latest", tcp)
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(list, []byte(strings.Replace(string(text), "1a1a", "3c3c", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a changed list", k.Public(), "was changed after it was signed")

	for why, c := range map[string]struct {
		names []string
		words string
	}{
		"not there":              {[]string{"linktrial/none"}, "No such image: linktrial/none"},
		"twice":                  {[]string{"linktrial/agent:v1", "linktrial/agent:v1"}, "image linktrial/agent:v1 is named twice"},
		"no digest that is kept": {[]string{"odd"}, `identity "md5:00"`},
	} {
		fresh := filepath.Join(t.TempDir(), "images.txt")
		if _, err := k.SignImages(t.Context(), c.names, fresh); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", why, err)
		}
		if _, err := os.Stat(fresh); !os.IsNotExist(err) {
			t.Errorf("%s: a list was left: %v", why, err)
		}
	}
}
