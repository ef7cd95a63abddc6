package laptop

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// libcLibraries are those of Debian's package libc6, which every Debian has.
var libcLibraries = []string{"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libanl.so.1", "libc.so.6", "libdl.so.2", "libm.so.6",
	"libmvec.so.1", "libpthread.so.0", "libresolv.so.2", "librt.so.1", "libutil.so.1"}

// openELF opens a program or library; nil where a file is none.
func openELF(path string) (*elf.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	magic := make([]byte, len(elf.ELFMAG))
	if _, err := io.ReadFull(f, magic); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil && !bytes.Equal(magic, []byte(elf.ELFMAG)) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return elf.Open(path)
}

// each calls do for every program and library of the tree, in order.
func (t tree) each(do func(name string, f *elf.File) error) error {
	for _, name := range t.names() {
		f, err := openELF(t[name].from)
		if err == nil && f != nil {
			err = errors.Join(do(name, f), f.Close())
		}
		if err != nil {
			return fmt.Errorf("package: %s: %w", name, err)
		}
	}
	return nil
}

// runsOnLibcAlone fails where a program needs a library that a bare Debian may lack.
func (t tree) runsOnLibcAlone() error {
	return t.each(func(_ string, f *elf.File) error {
		libraries, err := f.ImportedLibraries()
		if err != nil {
			return err
		}
		for _, l := range libraries {
			if !slices.Contains(libcLibraries, l) {
				return fmt.Errorf("needs %s, which a bare Debian lacks: link it into the program (make build)", l)
			}
		}
		return nil
	})
}

// oldestLibc returns the oldest version of libc that every program and library works with.
func (t tree) oldestLibc() (string, error) {
	oldest := []int{2, 2, 5} // the first one of x86-64
	err := t.each(func(_ string, f *elf.File) error {
		if f.SectionByType(elf.SHT_GNU_VERNEED) == nil {
			return nil // a static program, or data in the form of a library
		}
		needs, err := f.DynamicVersionNeeds()
		if err != nil {
			return err
		}
		for _, library := range needs {
			for _, need := range library.Needs {
				if v := libcVersion(need.Dep); slices.Compare(v, oldest) > 0 {
					oldest = v
				}
			}
		}
		return nil
	})
	var text []string
	for _, n := range oldest {
		text = append(text, strconv.Itoa(n))
	}
	return strings.Join(text, "."), err
}

// libcVersion reads "GLIBC_2.34"; nil where it is another library's.
func libcVersion(symbol string) []int {
	text, ok := strings.CutPrefix(symbol, "GLIBC_")
	if !ok {
		return nil
	}
	if text == "ABI_DT_RELR" { // of programs linked with -z pack-relative-relocs
		text = "2.36"
	}
	var v []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		v = append(v, n)
	}
	return v
}
