package bundle

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report describes a bundle whose check has succeeded.
type Report struct {
	Manifest Manifest
	Files    int
	Bytes    int64 // of the files, unpacked
}

// IsLaptopPackage reports whether a file has the name of a package that bundle/laptop builds.
// Its signature is all that there is to verify: dpkg and tar do the rest.
func IsLaptopPackage(file string) bool {
	name := filepath.Base(file)
	return strings.HasPrefix(name, "linktrial_") && (strings.HasSuffix(name, ".deb") || strings.HasSuffix(name, ".tar.gz"))
}

// Bounds of what is read into memory.
const (
	maxManifest  = 4 << 20
	maxChecksums = 16 << 20
)

// Check reads a bundle to its end and compares every file with its checksum and with
// the manifest. The error names the first file that is wrong. It unpacks nothing.
func Check(path string) (Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return Report{}, fmt.Errorf("bundle: %w", err)
	}
	defer f.Close()
	r, err := check(bufio.NewReaderSize(f, 1<<20))
	if err != nil {
		return Report{}, fmt.Errorf("bundle %s: %w", path, err)
	}
	return r, nil
}

func check(in io.Reader) (Report, error) {
	c := contents{digests: map[string]string{}}
	z, err := gzip.NewReader(in)
	if err != nil {
		return Report{}, fmt.Errorf("expected a tar with gzip: %w", err)
	}
	if err := c.read(tar.NewReader(z)); err != nil {
		return Report{}, err
	}
	// Read to the end of the file, so that gzip verifies its own checksum.
	if _, err := io.Copy(io.Discard, z); err != nil {
		return Report{}, damaged(err)
	}
	m, err := c.verify()
	return Report{Manifest: m, Files: c.files, Bytes: c.bytes}, err
}

// contents is what was read of an archive.
type contents struct {
	files               int
	bytes               int64
	digests             map[string]string // SHA-256 in hex, by name; without the file of checksums
	manifest, checksums []byte            // nil: not in it
}

func (c *contents) read(t *tar.Reader) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(err)
		}
		name, below := strings.CutPrefix(h.Name, folder+"/")
		if h.Typeflag == tar.TypeDir && (below || h.Name == folder) {
			if name = strings.TrimSuffix(name, "/"); name == "" || h.Name == folder || clean(name) {
				continue
			}
		}
		if !below || h.Typeflag != tar.TypeReg || !clean(name) {
			return fmt.Errorf("entry %.200q, expected files and folders below %s only", h.Name, folder)
		}
		if _, twice := c.digests[name]; twice || (name == checksumsFile && c.checksums != nil) {
			return fmt.Errorf("file %s is in it twice", name)
		}
		if err := c.readFile(name, t); err != nil {
			return err
		}
	}
}

func (c *contents) readFile(name string, from io.Reader) error {
	digest := sha256.New()
	keep := &capped{kept: []byte{}}
	to := io.Writer(digest)
	switch name {
	case manifestFile:
		keep.left, to = maxManifest, io.MultiWriter(digest, keep)
	case checksumsFile:
		keep.left, to = maxChecksums, keep
	}
	n, err := io.Copy(to, from)
	if err != nil {
		return damaged(fmt.Errorf("file %s: %w", name, err))
	}
	c.files++
	c.bytes += n
	switch name {
	case checksumsFile:
		c.checksums = keep.kept
		return nil // it has no checksum of its own
	case manifestFile:
		c.manifest = keep.kept
	}
	c.digests[name] = hex.EncodeToString(digest.Sum(nil))
	return nil
}

// verify compares the files with their checksums and with the manifest.
func (c *contents) verify() (Manifest, error) {
	if c.checksums == nil {
		return Manifest{}, fmt.Errorf("there is no %s in it: it was cut off, or is not an install bundle", checksumsFile)
	}
	sums, err := parseSums(c.checksums)
	if err != nil {
		return Manifest{}, err
	}
	if err := compare(sums, c.digests); err != nil {
		return Manifest{}, err
	}
	if c.manifest == nil {
		return Manifest{}, fmt.Errorf("there is no %s in it", manifestFile)
	}
	m, err := parseManifest(c.manifest)
	if err != nil {
		return Manifest{}, err
	}
	for _, name := range m.files() {
		if _, ok := c.digests[name]; !ok {
			return Manifest{}, fmt.Errorf("%s names %s, which is missing", manifestFile, name)
		}
	}
	return m, nil
}

func damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it was cut off: %w", err)
	}
	return fmt.Errorf("it is damaged: %w", err)
}

// compare returns an error for the first file, by name, that is wrong.
func compare(want, found map[string]string) error {
	var names []string
	for name := range want {
		names = append(names, name)
	}
	for name := range found {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		w, listed := want[name]
		f, there := found[name]
		switch {
		case !there:
			return fmt.Errorf("file %s is missing", name)
		case !listed:
			return fmt.Errorf("file %s is not in %s", name, checksumsFile)
		case w != f:
			return fmt.Errorf("file %s has the checksum %s, expected %s", name, f, w)
		}
	}
	return nil
}

// capped keeps what is written to it, and fails beyond a bound.
type capped struct {
	kept []byte
	left int
}

func (c *capped) Write(b []byte) (int, error) {
	if len(b) > c.left {
		return 0, errors.New("it is larger than in any bundle that Linktrial makes")
	}
	c.left -= len(b)
	c.kept = append(c.kept, b...)
	return len(b), nil
}
