package evidence

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxDirectory bounds the archive's directory, in bytes: [Limits].Files entries with long
// names. It is read as a whole, whatever number of entries it states.
const maxDirectory = 16 << 20

// openArchive opens a bag that is a ZIP.
func openArchive(name string, r io.ReaderAt, size int64, limits Limits) (*Bag, error) {
	b := &Bag{name: name, files: map[string]member{}}
	directory := &bounded{r: r, left: maxDirectory}
	z, err := zip.NewReader(directory, size)
	switch {
	case errors.Is(err, errDirectory):
		return nil, b.errorf("", "its directory has more than %d bytes, expected at most %d files", maxDirectory, limits.Files)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // which names they are is found below
		return nil, b.errorf("", "it is no whole ZIP: %s", err)
	case len(z.File) > limits.Files:
		return nil, b.errorf("", "it has %d files, expected at most %d", len(z.File), limits.Files)
	}
	directory.read = true
	if err := b.take(z.File, limits); err != nil {
		return nil, err
	}
	if err := b.checkHeaders(z.File, r); err != nil {
		return nil, err
	}
	for _, f := range z.File {
		if below, _ := strings.CutPrefix(f.Name, b.folder+"/"); !f.Mode().IsDir() {
			b.files[below] = member{size: int64(f.UncompressedSize64), open: f.Open}
		}
	}
	return b, b.load()
}

// take checks the archive's directory, and finds its one folder.
func (b *Bag) take(files []*zip.File, limits Limits) error {
	seen := newNameSet()
	var total uint64
	for _, f := range files {
		name := printable(f.Name)
		if err := checkEntry(f, limits); err != nil {
			return b.errorf(name, "%s", err)
		}
		folder, below, _ := strings.Cut(f.Name, "/")
		if b.folder == "" {
			b.folder = folder
		}
		switch {
		case folder != b.folder:
			return b.errorf(name, "it is not in the folder %s, expected one folder in the archive", b.folder)
		case f.Mode().IsDir():
			continue
		case below == "":
			return b.errorf(name, "it is in no folder, expected one folder with all files")
		}
		if err := seen.add(f.Name); err != nil {
			return b.errorf(name, "%s", err)
		}
		if total += f.UncompressedSize64; total > uint64(limits.Total) {
			return b.errorf(name, "with it the files have %d bytes, expected at most %d", total, limits.Total)
		}
	}
	if len(seen.files) == 0 {
		return b.errorf("", "it has no files")
	}
	return nil
}

// checkEntry returns why an entry of the archive cannot be in a bag.
func checkEntry(f *zip.File, limits Limits) error {
	name, mode := f.Name, f.Mode()
	if mode.IsDir() {
		name = strings.TrimSuffix(name, "/")
	}
	if err := checkName(name); err != nil {
		return err
	}
	switch {
	case !mode.IsDir() && !mode.IsRegular():
		return errors.New("it is a link or a device, expected a file")
	case f.Flags&(1<<0|1<<6|1<<13) != 0: // APPNOTE 4.4.4: encrypted, strongly, masked directory
		return errors.New("it is encrypted")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return fmt.Errorf("it is compressed by method %d, expected stored or deflated", f.Method)
	case mode.IsDir() && (f.UncompressedSize64 > 0 || f.CompressedSize64 > 0):
		return errors.New("it is a folder with content")
	case f.UncompressedSize64 > uint64(limits.File):
		return fmt.Errorf("it has %d bytes, expected at most %d", f.UncompressedSize64, limits.File)
	case f.Method == zip.Store && f.UncompressedSize64 != f.CompressedSize64:
		return fmt.Errorf("it is stored as it is, and has %d bytes in the archive and %d outside", f.CompressedSize64, f.UncompressedSize64)
	case f.UncompressedSize64 > ratioFrom && f.UncompressedSize64/uint64(limits.Ratio) > f.CompressedSize64:
		return fmt.Errorf("%d bytes in the archive become %d, expected at most %d times as many", f.CompressedSize64, f.UncompressedSize64, limits.Ratio)
	}
	return nil
}

// Local headers of a ZIP (APPNOTE.TXT, 4.3.7), and what may be between the content of one file
// and the header of the next: a data descriptor of at most 24 bytes (4.3.9).
const (
	localSignature = 0x04034b50
	localBytes     = 30
	maxDescriptor  = 24
)

// checkHeaders holds the header before each file's content against the directory, so that
// every program finds the same files: no content has two names, and nothing is between them.
func (b *Bag) checkHeaders(files []*zip.File, r io.ReaderAt) error {
	type place struct {
		f  *zip.File
		at int64 // of its content
	}
	places := make([]place, len(files))
	for i, f := range files {
		at, err := f.DataOffset()
		if err != nil {
			return b.errorf(printable(f.Name), "its header cannot be read: %s", err)
		}
		places[i] = place{f, at}
	}
	slices.SortStableFunc(places, func(x, y place) int { return cmp.Compare(x.at, y.at) })
	end := int64(0)
	for _, p := range places {
		if err := checkHeader(p.f, r, end, p.at); err != nil {
			return b.errorf(printable(p.f.Name), "%s", err)
		}
		end = p.at + int64(p.f.CompressedSize64)
	}
	return nil
}

// checkHeader finds a file's header between the end of the content before it and its own.
func checkHeader(f *zip.File, r io.ReaderAt, end, content int64) error {
	most := int64(localBytes + maxDescriptor + len(f.Name) + 1<<16)
	if gap := content - end; gap < localBytes || gap > most {
		return errors.New("its content overlaps another file's, or something is before it that the archive's directory does not have")
	}
	gap := make([]byte, content-end)
	if _, err := r.ReadAt(gap, end); err != nil {
		return fmt.Errorf("its header cannot be read: %w", err)
	}
	for skip := 0; skip <= maxDescriptor && len(gap)-skip >= localBytes; skip += 4 {
		h := gap[skip:]
		name, extra := int(binary.LittleEndian.Uint16(h[26:])), int(binary.LittleEndian.Uint16(h[28:]))
		if binary.LittleEndian.Uint32(h) != localSignature || localBytes+name+extra != len(h) {
			continue
		}
		if !bytes.Equal(h[localBytes:localBytes+name], []byte(f.Name)) || binary.LittleEndian.Uint16(h[8:]) != f.Method {
			return errors.New("the header before its content has another name or method than the archive's directory")
		}
		return nil
	}
	return errors.New("the header before its content is not where it has to be")
}

// printable is a name as sentences can have it.
func printable(name string) string {
	if checkName(strings.TrimSuffix(name, "/")) == nil {
		return name
	}
	return fmt.Sprintf("%.200q", name)
}

var errDirectory = errors.New("too large a directory")

// bounded reads at most so many bytes in all, until the directory is read.
type bounded struct {
	r    io.ReaderAt
	left int64
	read bool
}

func (b *bounded) ReadAt(p []byte, at int64) (int, error) {
	if !b.read {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, errDirectory
		}
	}
	return b.r.ReadAt(p, at)
}
