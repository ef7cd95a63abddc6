package docker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two nodes of one name on one engine do not remove each other's containers, and
// a node knows its own after a restart.
func TestContainerLabel(t *testing.T) {
	one, other := Config{Agent: "client", StateDir: filepath.Join(t.TempDir(), "a")}, Config{Agent: "client", StateDir: filepath.Join(t.TempDir(), "b")}
	first, err := label(one)
	if err != nil || !strings.HasPrefix(first, "client-") {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := label(one); err != nil || again != first {
		t.Errorf("%q, %v, expected %q again", again, err, first)
	}
	if theirs, err := label(other); err != nil || theirs == first {
		t.Errorf("%q, %v, expected another than %q", theirs, err, first)
	}
	if err := os.WriteFile(filepath.Join(one.StateDir, labelFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := label(one); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("%q, %v, expected a refusal", got, err)
	}
}
