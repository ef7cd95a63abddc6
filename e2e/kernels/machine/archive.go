package machine

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// File is one file of the machine's file system.
type File struct {
	Name string // absolute, in the machine
	From string // file of the host; empty: Content
	// Content of a file that the host does not have.
	Content    []byte
	Executable bool
}

// Modes of cpio entries (stat(2)).
const (
	modeFolder = 0o040755
	modeFile   = 0o100644
	modeDevice = 0o020600 // of a character device
)

// writeArchive writes files as a cpio archive of the form "newc", which the
// kernel unpacks into the memory that is its first file system
// (Documentation/driver-api/early-userspace/buffer-format.rst). It is not
// compressed: an emulated processor would take longer to unpack it than the host
// takes to read it.
func writeArchive(w io.Writer, files []File) error {
	a := &archive{w: bufio.NewWriterSize(w, 1<<20), made: map[string]bool{"/": true}}
	// The kernel opens it for its first process before that could mount /dev.
	a.folder("/dev")
	a.entry("/dev/console", modeDevice, 5, 1, 0)
	for _, f := range files {
		a.folder(path.Dir(f.Name))
		if err := a.file(f); err != nil {
			return fmt.Errorf("file system of the machine: %s: %w", f.Name, err)
		}
	}
	a.entry("TRAILER!!!", 0, 0, 0, 0)
	if a.err == nil {
		a.err = a.w.Flush()
	}
	if a.err != nil {
		return fmt.Errorf("file system of the machine: %w", a.err)
	}
	return nil
}

type archive struct {
	w    *bufio.Writer
	made map[string]bool // folders
	ino  int
	at   int64
	err  error
}

func (a *archive) write(b []byte) {
	if a.err == nil {
		_, a.err = a.w.Write(b)
		a.at += int64(len(b))
	}
}

func (a *archive) pad() {
	if over := a.at % 4; over != 0 {
		a.write(make([]byte, 4-over))
	}
}

// entry writes the head of one entry; the content of a file follows.
func (a *archive) entry(name string, mode, major, minor int, size int64) {
	a.ino++
	if name != "TRAILER!!!" {
		name = strings.TrimPrefix(name, "/")
	}
	const links, owner, group, changed, deviceMajor, deviceMinor, sum = 1, 0, 0, 0, 0, 0, 0
	head := "070701"
	for _, n := range []int64{int64(a.ino), int64(mode), owner, group, links, changed, size, deviceMajor, deviceMinor, int64(major), int64(minor), int64(len(name) + 1), sum} {
		head += fmt.Sprintf("%08X", n)
	}
	a.write([]byte(head + name + "\x00"))
	a.pad()
}

func (a *archive) folder(name string) {
	if a.made[name] {
		return
	}
	a.folder(path.Dir(name))
	a.made[name] = true
	a.entry(name, modeFolder, 0, 0, 0)
}

func (a *archive) file(f File) error {
	content := f.Content
	if f.From != "" {
		b, err := os.ReadFile(f.From)
		if err != nil {
			return err
		}
		content = b
	}
	mode := modeFile
	if f.Executable {
		mode |= 0o111
	}
	a.entry(f.Name, mode, 0, 0, int64(len(content)))
	a.write(content)
	a.pad()
	return nil
}

// distinct sorts files by name and drops the second of two with one name: two
// programs need the same library.
func distinct(files []File) []File {
	out := slices.Clone(files)
	slices.SortStableFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(out, func(a, b File) bool { return a.Name == b.Name })
}
