package cxxtest_test

import (
	"debug/elf"
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"linktrial/internal/checkout"
)

// TestObjectsSayWhichProcessor: what is compiled for newer processors says so, by which the
// laptop package refuses it.
func TestObjectsSayWhichProcessor(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("levels of x86-64")
	}
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[string]uint32{"-O0": 1, "-O0 -mavx": 1 | 2 | 4} {
		out := filepath.Join(t.TempDir(), "drivers")
		object := filepath.Join(out+".obj", "cxx", "address.o")
		if b, err := exec.Command("make", "-C", filepath.Join(root, "protocols", "cxx"), "OUT="+out, "CXXFLAGS="+flags, object).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		f, err := elf.Open(object)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		// One note "GNU" of one property: its kind, its size, its bits.
		note, err := f.Section(".note.gnu.property").Data()
		if err != nil || len(note) < 28 {
			t.Fatalf("%s: % x, %v", flags, note, err)
		}
		const needed = 0xc0008002
		if kind, levels := binary.LittleEndian.Uint32(note[16:]), binary.LittleEndian.Uint32(note[24:]); kind != needed || levels != want {
			t.Errorf("%s: property %#x with %b, expected %#x with %b", flags, kind, levels, needed, want)
		}
	}
}
