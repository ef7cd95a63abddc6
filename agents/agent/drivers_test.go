package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two nodes of one name on one engine do not remove each other's containers, and
// a node knows its own after a restart.
func TestContainerLabel(t *testing.T) {
	one, other := Config{Name: "client", StateDir: filepath.Join(t.TempDir(), "a")}, Config{Name: "client", StateDir: filepath.Join(t.TempDir(), "b")}
	first, err := containerLabel(one)
	if err != nil || !strings.HasPrefix(first, "client-") {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := containerLabel(one); err != nil || again != first {
		t.Errorf("%q, %v, expected %q again", again, err, first)
	}
	if theirs, err := containerLabel(other); err != nil || theirs == first {
		t.Errorf("%q, %v, expected another than %q", theirs, err, first)
	}
	if err := os.WriteFile(filepath.Join(one.StateDir, labelFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if label, err := containerLabel(one); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("%q, %v, expected a refusal", label, err)
	}
}
