package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"linktrial/internal/radio"
)

var client = Identity{Run: "r1", Node: "n1", Role: radio.RoleClient}

func open(t testing.TB, path string, o Options) *File {
	t.Helper()
	if o.ReserveBytes == 0 {
		o.ReserveBytes = -1
	}
	j, err := Open(path, client, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func fill(t testing.TB, j *File, n int) {
	t.Helper()
	for i := range n {
		if _, err := j.Append(TypeTrialEnded, TrialEnded{Trial: i, Attempts: 1, Verdict: Succeeded}); err != nil {
			t.Fatal(err)
		}
	}
}

func trials(t testing.TB, j *File) []int64 {
	t.Helper()
	var out []int64
	if err := j.Records(func(r Record) error { out = append(out, r.Seq); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// A crash may cut the file at any byte: all whole records before the cut are
// there again, and the journal takes new ones.
func TestTruncatedAtEveryByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, Options{})
	fill(t, j, 4)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		want := int64(bytes.Count(whole[:cut], []byte("\n")))
		j := open(t, path, Options{})
		if j.Last() != want || j.Durable() != want {
			t.Fatalf("cut at %d: %d records, expected %d", cut, j.Last(), want)
		}
		fill(t, j, 1)
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		if got := trials(t, j); int64(len(got)) != want+1 {
			t.Fatalf("cut at %d: records %v after one more", cut, got)
		}
		j.Close()
	}
}

func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, Options{})
	fill(t, j, 4)
	j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{0}
	for i, c := range whole {
		if c == '\n' {
			ends = append(ends, i+1)
		}
	}
	for at := range whole {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x10
		os.WriteFile(path, bad, 0o644)
		j, err := Open(path, client, Options{ReserveBytes: -1})
		var damage *DamageError
		if at == len(whole)-1 {
			// The last newline: as good as torn.
			if err != nil || j.Last() != 3 {
				t.Fatalf("flip at %d: %v", at, err)
			}
			j.Close()
			continue
		}
		line := 1
		for at >= ends[line] {
			line++
		}
		if !errors.As(err, &damage) || damage.Line != line || damage.Offset != int64(ends[line-1]) {
			t.Fatalf("flip at %d (line %d, offset %d): %v", at, line, ends[line-1], err)
		}
		if text := err.Error(); !strings.Contains(text, fmt.Sprintf("line %d (offset %d)", damage.Line, damage.Offset)) {
			t.Errorf("error %q names no place", text)
		}
	}
	// Whole records out of order are damage as well.
	swapped := append(bytes.Clone(whole[ends[1]:ends[2]]), whole[:ends[1]]...)
	os.WriteFile(path, swapped, 0o644)
	if _, err := Open(path, client, Options{ReserveBytes: -1}); err == nil {
		t.Error("records out of order were taken")
	}
	// Zeros, as some file systems leave them after a power cut.
	os.WriteFile(path, append(bytes.Clone(whole), make([]byte, 5000)...), 0o644)
	j = open(t, path, Options{})
	if j.Last() != 4 {
		t.Errorf("%d records before zeros, expected 4", j.Last())
	}
	j.Close()
}

func TestJournalOfAnotherRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, Options{})
	fill(t, j, 1)
	j.Close()
	if _, err := Open(path, Identity{Run: "r2", Node: "n1", Role: radio.RoleClient}, Options{ReserveBytes: -1}); err == nil || !strings.Contains(err.Error(), "r2") {
		t.Errorf("journal of another run was taken: %v", err)
	}
}

// Readers see durable records only, in order, while the writer goes on.
func TestReadWhileWriting(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"), Options{})
	defer j.Close()
	const n = 2000
	fill(t, j, 1)
	if got, err := j.Read(1, 1<<20); err != nil || len(got) != 0 {
		t.Fatalf("read %d records before a sync: %v", len(got), err)
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 1; i < n; i++ {
			fill(t, j, 1)
			if i%50 == 0 || i == n-1 {
				if err := j.Sync(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for next := int64(1); next <= n; {
		changed := j.Changed()
		entries, err := j.Read(next, 2048)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, e := range entries {
			if e.Seq != next || !bytes.Contains(e.JSON, []byte(fmt.Sprintf(`{"seq":%d,`, next))) {
				t.Fatalf("record %d is %s, expected %d", e.Seq, e.JSON, next)
			}
			next++
			size += len(e.JSON)
		}
		if size > 2048 && len(entries) > 1 {
			t.Fatalf("%d records of %d bytes, at most 2048 were asked for", len(entries), size)
		}
		if len(entries) == 0 {
			<-changed
		}
	}
	writing.Wait()
}

func TestLargestRecord(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"), Options{})
	defer j.Close()
	if _, err := j.Append(TypeAttemptEnded, AttemptEnded{Log: strings.Repeat("x", MaxRecord)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a record over the limit: %v", err)
	}
	if _, err := j.Append(TypeAttemptEnded, AttemptEnded{Log: strings.Repeat("x", MaxRecord-4096)}); err != nil {
		t.Errorf("a record under the limit: %v", err)
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	if e, err := j.Read(1, 10); err != nil || len(e) != 1 {
		t.Errorf("read %d: %v", len(e), err)
	}
}

func TestNoNUL(t *testing.T) {
	for in, want := range map[string]string{
		`"a\u0000b"`:       `"a\ufffdb"`,
		`"a\\u0000b"`:      `"a\\u0000b"`,
		`"\\\u0000\u0000"`: `"\\\ufffd\ufffd"`,
	} {
		if got := string(withoutNUL([]byte(in))); got != want {
			t.Errorf("%s became %s, expected %s", in, got, want)
		}
	}
}

// On a real, small, full file system the last records of a run still fit.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	path := filepath.Join(dir, "j")
	j := open(t, path, Options{ReserveBytes: 128 << 10})
	batch := Samples{Side: strings.Repeat("s", 8<<10)}
	full := false
	for range 200 {
		if _, err := j.Append(TypeSamples, batch); err != nil {
			if !errors.Is(err, ErrDiskFull) {
				t.Fatal(err)
			}
			full = true
			break
		}
		if err := j.Sync(); err != nil && !errors.Is(err, ErrDiskFull) {
			t.Fatal(err)
		}
	}
	if !full || !errors.Is(j.CheckSpace(), ErrDiskFull) {
		t.Fatalf("the disk did not fill: %v", j.CheckSpace())
	}
	if _, err := j.Append(TypeRunEnded, RunEnded{End: RunStopped, Reason: "disk full"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Sync(); err != nil && !errors.Is(err, ErrDiskFull) {
		t.Fatal(err)
	}
	last := j.Last()
	if j.Durable() != last {
		t.Fatalf("%d of %d records are durable", j.Durable(), last)
	}
	j.Close()
	j = open(t, path, Options{ReserveBytes: 128 << 10})
	if j.Last() != last {
		t.Errorf("%d records after opening again, expected %d", j.Last(), last)
	}
	j.Close()
}

func TestFloor(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j"), Options{FloorBytes: 1 << 62})
	defer j.Close()
	if err := j.CheckSpace(); !errors.Is(err, ErrDiskFull) {
		t.Errorf("under the floor: %v", err)
	}
}

func FuzzScan(f *testing.F) {
	var whole []byte
	for i := 1; i <= 3; i++ {
		whole = appendLine(whole, fmt.Appendf(nil, `{"seq":%d,"run":"r1","node":"n1","role":"client","at":"2026-01-02T03:04:05Z","type":"samples"}`, i))
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-7])
	f.Add([]byte("00000000 \n"))
	f.Add([]byte("deadbeef {}\n"))
	f.Add(append([]byte("x\n"), whole...))
	f.Add([]byte{0, 0, '\n'})
	f.Fuzz(func(t *testing.T, b []byte) {
		seq := int64(0)
		good, err := Scan(bytes.NewReader(b), func(r Record, end int64) error {
			if seq++; r.Seq != seq || end > int64(len(b)) {
				t.Fatalf("record %d ends at %d", r.Seq, end)
			}
			return nil
		})
		if good < 0 || good > int64(len(b)) {
			t.Fatalf("%d good bytes of %d", good, len(b))
		}
		var damage *DamageError
		if err != nil && !errors.As(err, &damage) {
			t.Fatalf("error %v", err)
		}
		// What is good stays good: recovery is a fixed point.
		n := int64(0)
		again, err := Scan(bytes.NewReader(b[:good]), func(Record, int64) error { n++; return nil })
		if err != nil || again != good || n != seq {
			t.Fatalf("good part of %d bytes reads as %d bytes, %d records of %d: %v", good, again, n, seq, err)
		}
	})
}
