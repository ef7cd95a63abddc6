package join

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"linktrial/internal/radio"
)

// FuzzParseMessage: what is taken can be written and is taken again, the same.
func FuzzParseMessage(f *testing.F) {
	for _, m := range []message{{Role: radio.RoleServer}, {Up: true}, {Refused: "no node of that role"}} {
		b, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMessage(b)
		if err != nil {
			return
		}
		written, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseMessage(written); err != nil || again != m {
			t.Fatalf("%+v was %+v: %v", again, m, err)
		}
	})
}

// FuzzFollow: whatever the emulator sends, the node ends with an error and has read
// no line longer than a message.
func FuzzFollow(f *testing.F) {
	f.Add("{\"up\":true}\n{\"up\":true}\n")
	f.Add("{\"refused\":\"no\"}\n")
	f.Add("{\"refused\":\"" + strings.Repeat("x", maxMessage) + "\"}\n")
	f.Add("{")
	f.Fuzz(func(t *testing.T, text string) {
		ups := 0
		err := follow(strings.NewReader(text), func() { ups++ })
		if err == nil {
			t.Fatal("no error at the end")
		}
		var refused *refusedError
		if errors.As(err, &refused) && (refused.reason == "" || len(refused.reason) > maxMessage) {
			t.Fatalf("refused for %q", refused.reason)
		}
		if lines := strings.Count(text, "\n") + 1; ups > lines {
			t.Fatalf("%d times up in %d lines", ups, lines)
		}
	})
}
