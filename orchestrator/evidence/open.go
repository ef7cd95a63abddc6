package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Limits bound what is read of a bag, which can be anybody's.
type Limits struct {
	Files int   // entries of the archive, or files of the folder
	File  int64 // bytes of one file
	Total int64 // bytes of all files
	// Ratio is how many times larger a file may be than it is in the archive. It holds for
	// files above [ratioFrom].
	Ratio int64
}

// DefaultLimits are far above what a campaign of a month has.
func DefaultLimits() Limits {
	return Limits{Files: 50_000, File: 8 << 30, Total: 64 << 30, Ratio: 400}
}

// ratioFrom is the size in bytes above which a file's ratio is bounded: a small one costs
// nothing, whatever it is made of.
const ratioFrom = 4 << 20

// FileError says what is wrong with one file of a bag, or with the bag (File is empty).
type FileError struct {
	Bag, File string
	Problem   string
}

// Error implements error: one sentence that names the bag and the file in it.
func (e *FileError) Error() string {
	if e.File == "" {
		return e.Bag + ": " + e.Problem
	}
	return e.Bag + ": " + e.File + ": " + e.Problem
}

// Bag is an opened bag. Its files are named as in [Manifest]: below the bag's one folder.
type Bag struct {
	Index *Evidence

	name    string // for errors
	folder  string // the one folder of an archive; empty: the bag is a folder
	files   map[string]member
	names   []string          // sorted
	payload map[string]string // SHA-256 in hexadecimal, as the manifest has it
	tags    map[string]string // as the tag manifest has it
	closer  io.Closer
}

// member is a file of a bag: its size as it is declared, and its content, unchecked.
type member struct {
	size int64
	open func() (io.ReadCloser, error)
}

// Open opens a bag: its ZIP, or the folder that the ZIP was unpacked to. It reads names,
// manifests and index, and refuses what a bag cannot have; the content of the other files is
// held against the manifests as it is read. Errors name the bag and the file in it
// ([FileError]).
func Open(path string, limits Limits) (*Bag, error) {
	name := filepath.Base(path)
	// Without O_NONBLOCK opening a FIFO waits for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	var b *Bag
	switch {
	case st.IsDir():
		_ = f.Close() // nothing was read
		return openFolder(name, path, limits)
	case !st.Mode().IsRegular():
		err = &FileError{Bag: name, Problem: "it is no regular file, expected a ZIP or a folder"}
	default:
		b, err = openArchive(name, f, st.Size(), limits)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b.closer = f
	return b, nil
}

// Close ends reading. Files that are open end with it.
func (b *Bag) Close() error { return b.closer.Close() }

// Name is the bag's name, as errors have it.
func (b *Bag) Name() string { return b.name }

// Names are the bag's files in order; not to be changed.
func (b *Bag) Names() []string { return b.names }

// Has reports whether the bag has a file.
func (b *Bag) Has(name string) bool {
	_, ok := b.files[name]
	return ok
}

func (b *Bag) errorf(file, format string, args ...any) error {
	return &FileError{Bag: b.name, File: file, Problem: fmt.Sprintf(format, args...)}
}

// load reads manifests and index of a bag whose files are known.
func (b *Bag) load() (err error) {
	b.names = make([]string, 0, len(b.files))
	for name := range b.files {
		b.names = append(b.names, name)
	}
	slices.Sort(b.names)
	if b.payload, err = b.manifest(Manifest, true); err != nil {
		return err
	}
	if b.tags, err = b.manifest(TagManifest, false); err != nil {
		return err
	}
	text, err := b.Read(Index, maxIndex)
	if err != nil {
		return err
	}
	if b.Index, err = decodeIndex(text); err != nil {
		return b.errorf(Index, "%s", err)
	}
	return nil
}

func (b *Bag) manifest(name string, payload bool) (map[string]string, error) {
	text, err := b.unchecked(name, maxManifest)
	if err != nil {
		return nil, err
	}
	list, err := parseManifest(text, payload)
	if err != nil {
		return nil, b.errorf(name, "%s", err)
	}
	return list, nil
}

// digestOf is the SHA-256 that a manifest has of a file, and the manifest's name; false: none
// has one.
func (b *Bag) digestOf(name string) (digest, in string, ok bool) {
	if digest, ok = b.payload[name]; ok {
		return digest, Manifest, true
	}
	digest, ok = b.tags[name]
	return digest, TagManifest, ok
}

// Open opens a file of the bag. What is read is held against the manifest: where its size or
// its SHA-256 is another one, the last read returns a [FileError] in place of io.EOF.
func (b *Bag) Open(name string) (io.ReadCloser, error) {
	want, in, ok := b.digestOf(name)
	switch {
	case !b.Has(name):
		return nil, b.errorf(name, "the bag does not have the file")
	case !ok:
		return nil, b.errorf(name, "no manifest has the file's SHA-256")
	}
	return b.open(name, want, in)
}

// Read is [Bag.Open] for a whole file of at most limit bytes.
func (b *Bag) Read(name string, limit int64) ([]byte, error) {
	in, err := b.Open(name)
	if err != nil {
		return nil, err
	}
	return b.readAll(name, in, limit)
}

// unchecked reads a file that no manifest has.
func (b *Bag) unchecked(name string, limit int64) ([]byte, error) {
	if !b.Has(name) {
		return nil, b.errorf(name, "the bag does not have the file")
	}
	in, err := b.open(name, "", "")
	if err != nil {
		return nil, err
	}
	return b.readAll(name, in, limit)
}

func (b *Bag) readAll(name string, in io.ReadCloser, limit int64) ([]byte, error) {
	defer func() { _ = in.Close() }() // only read
	if n := b.files[name].size; n > limit {
		return nil, b.errorf(name, "it has %d bytes, expected at most %d", n, limit)
	}
	return io.ReadAll(in)
}

func (b *Bag) open(name, want, manifest string) (io.ReadCloser, error) {
	in, err := b.files[name].open()
	if err != nil {
		return nil, b.errorf(name, "it cannot be read: %s", err)
	}
	return &verified{b: b, in: in, name: name, want: want, manifest: manifest, left: b.files[name].size, sum: sha256.New()}, nil
}

// verified reads a file and holds it against its manifest.
type verified struct {
	b              *Bag
	in             io.ReadCloser
	name           string
	want, manifest string // empty: no manifest has it
	left           int64  // of the declared size
	sum            hash.Hash
	err            error
}

func (v *verified) Read(p []byte) (int, error) {
	if v.err != nil {
		return 0, v.err
	}
	n, err := v.in.Read(p)
	v.left -= int64(n)
	v.sum.Write(p[:n])
	size := v.b.files[v.name].size
	switch {
	case v.left < 0:
		err = v.b.errorf(v.name, "it has more than the %d bytes that are declared", size)
	case err == nil:
	case !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = v.b.errorf(v.name, "it cannot be read to its end: %s", err)
	case v.left > 0:
		err = v.b.errorf(v.name, "it ends after %d bytes, %d are declared", size-v.left, size)
	case v.want != "":
		if got := hex.EncodeToString(v.sum.Sum(nil)); got != v.want {
			err = v.b.errorf(v.name, "it was changed: its SHA-256 is %s, by %s it is %s", got, v.manifest, v.want)
		}
	}
	v.err = err
	return n, err
}

func (v *verified) Close() error { return v.in.Close() }
