package uml

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What has been seen of a journal must stay in it; what an agent that was killed had
// begun to write may be cut off.
func TestHeldJournal(t *testing.T) {
	const seen = "one\ntwo\nthr"
	for _, tt := range []struct {
		name, then string
		changed    bool
	}{
		{"grown", "one\ntwo\nthree\nfour\n", false},
		{"half a line cut off", "one\ntwo\n", false},
		{"half a line written anew", "one\ntwo\nfour\n", false},
		{"a line changed", "one\ntw0\nthree\n", true},
		{"a line cut off", "one\n", true},
		{"a line put in", "one\nnew\ntwo\nthree\n", true},
		{"emptied", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.jsonl")
			h := hold(path)
			var lines strings.Builder
			take := func(b []byte) { lines.Write(b) }
			if err := h.read(take); err != nil || h.check() != nil {
				t.Fatalf("no journal yet: %v, %v", err, h.check())
			}
			for _, text := range []string{seen[:5], seen, tt.then} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := h.read(take); err != nil {
					t.Fatal(err)
				}
			}
			err := h.check()
			if (err != nil) != tt.changed {
				t.Fatalf("%v", err)
			}
			if !tt.changed && lines.String() != tt.then {
				t.Errorf("taken were %q of %q", lines.String(), tt.then)
			}
			if tt.changed && (!errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), path)) {
				t.Error(err)
			}
		})
	}
	h := hold(filepath.Join(t.TempDir(), "gone"))
	if err := os.WriteFile(h.path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.read(func([]byte) {}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(h.path); err != nil {
		t.Fatal(err)
	}
	if h.check() == nil {
		t.Error("a journal that was removed is as it was")
	}
}
