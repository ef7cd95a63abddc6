package laptop

import (
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"
)

// The property of an x86-64 program that says which level of the architecture it needs (x86-64
// psABI, "Program Property", GNU_PROPERTY_X86_ISA_1_NEEDED): a bit for each level, 1 to 8 for v1 to v4. The
// linker joins those of the objects, where the compiler writes them (g++ -mneeded).
const (
	propertyNote = 5 // NT_GNU_PROPERTY_TYPE_0
	neededLevels = 0xc0008002
)

// fitsAnyProcessor fails where a program or library needs a newer processor than the first
// ones of x86-64, which lack AVX, SSE 4 and more. What chooses by the processor while it runs,
// as libc does, is no matter.
func (t tree) fitsAnyProcessor() error {
	return t.each(func(name string, f *elf.File) error {
		if f.Machine != elf.EM_X86_64 {
			return nil
		}
		if f.Section(".go.buildinfo") != nil {
			return goForAnyProcessor(t[name].from)
		}
		s := f.Section(".note.gnu.property")
		if s == nil {
			return nil
		}
		note, err := s.Data()
		if err != nil {
			return err
		}
		levels, err := levelsNeeded(note)
		if err != nil {
			return err
		}
		if newest := bits.Len32(levels); newest > 1 {
			return fmt.Errorf("needs a processor of x86-64-v%d, expected to run on any x86-64: build it without -march, -mavx and the like (CXXFLAGS)", newest)
		}
		return nil
	})
}

// goForAnyProcessor fails where a program in Go was built for a newer processor.
func goForAnyProcessor(path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	for _, s := range info.Settings {
		if s.Key == "GOAMD64" && s.Value != "v1" {
			return fmt.Errorf("was built for a processor of x86-64-%s, expected to run on any x86-64: build it with GOAMD64=v1", s.Value)
		}
	}
	return nil
}

// levelsNeeded reads the bits of the levels from the notes of a 64-bit program; 0: they say
// nothing of it.
func levelsNeeded(notes []byte) (levels uint32, err error) {
	le := binary.LittleEndian
	for len(notes) > 0 {
		if len(notes) < 12 {
			return 0, fmt.Errorf("its note of properties: %w", io.ErrUnexpectedEOF)
		}
		name, size, kind := uint64(le.Uint32(notes)), uint64(le.Uint32(notes[4:])), le.Uint32(notes[8:])
		from := 12 + align(name, 4)
		next := from + align(size, 8)
		if uint64(len(notes)) < from+size {
			return 0, fmt.Errorf("its note of properties: %w", io.ErrUnexpectedEOF)
		}
		if kind == propertyNote && strings.TrimRight(string(notes[12:12+name]), "\x00") == "GNU" {
			one, err := levelsIn(notes[from : from+size])
			if err != nil {
				return 0, err
			}
			levels |= one
		}
		notes = notes[min(next, uint64(len(notes))):]
	}
	return levels, nil
}

// levelsIn reads them from the properties of one note.
func levelsIn(properties []byte) (levels uint32, err error) {
	le := binary.LittleEndian
	for len(properties) >= 8 {
		kind, size := le.Uint32(properties), uint64(le.Uint32(properties[4:]))
		if uint64(len(properties)) < 8+size || kind == neededLevels && size != 4 {
			return 0, errors.New("its note of properties is cut off")
		}
		if kind == neededLevels {
			levels |= le.Uint32(properties[8:])
		}
		properties = properties[min(8+align(size, 8), uint64(len(properties))):]
	}
	return levels, nil
}

// align is the least multiple of to that is not below n.
func align(n, to uint64) uint64 { return (n + to - 1) / to * to }
