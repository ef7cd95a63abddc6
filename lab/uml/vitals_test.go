package uml

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/lab/uml/guest"
)

// TestVitals: a guest notes what its processes use while a run lasts.
func TestVitals(t *testing.T) {
	b := newBench(t)
	s := b.named(t, plan(t, "looked-at", line(16e3, 100*time.Millisecond, uniform(0)), 64<<10, 1, "tcp-cubic"))
	res, err := Run(t.Context(), RunConfig{
		Kernel: b.kernel, Dir: t.TempDir(), Sheets: []Sheet{s}, Executable: b.executable, Drivers: b.drivers, Trust: trusted, Seed: 7, Vitals: 5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := res.Sheets[0]
	if r.Err != nil || r.Ended != r.Trials {
		t.Fatalf("%d of %d trials have ended: %v", r.Ended, r.Trials, r.Err)
	}
	text, err := os.ReadFile(r.Vitals)
	if err != nil {
		t.Fatal(err)
	}
	looks := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(looks) < 5 {
		t.Fatalf("%d looks in %s", len(looks), r.Virtual)
	}
	// In the last one the trial is under way, which 64 KiB over 16 kbit/s takes half a minute for.
	var l guest.Look
	if err := json.Unmarshal(looks[len(looks)-1], &l); err != nil {
		t.Fatal(err)
	}
	if l.At < 20*time.Second || l.MemoryBytes < 10<<20 || len(l.Processes) != 4 {
		t.Errorf("after %s: %d bytes and %d processes, expected 4", l.At, l.MemoryBytes, len(l.Processes))
	}
	for _, name := range []string{guest.Emulator, string(radio.RoleClient), string(radio.RoleRelay), string(radio.RoleServer)} {
		if u := l.Processes[name]; u.Goroutines < 2 || u.HeapBytes == 0 || u.MemoryBytes < 1<<20 || u.Threads < 2 || u.Files < 3 {
			t.Errorf("%s: %+v", name, u)
		}
	}
}
