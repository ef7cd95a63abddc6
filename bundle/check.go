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
	"slices"
	"strings"
)

// Report is what a check found in order.
type Report struct {
	Manifest Manifest
	Files    int
	Bytes    int64 // of the files, unpacked
}

// Bounds of what is read into memory.
const (
	maxManifest  = 4 << 20
	maxChecksums = 16 << 20
)

// Check reads a bundle from beginning to end and holds every file against its
// checksum and against the manifest. The error names the first file that is
// wrong. It unpacks nothing.
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
	var r Report
	z, err := gzip.NewReader(in)
	if err != nil {
		return r, fmt.Errorf("expected a tar with gzip: %w", err)
	}
	t := tar.NewReader(z)
	found := map[string]string{} // checksums by name
	var manifest, checksums []byte
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r, damaged(err)
		}
		name, below := strings.CutPrefix(h.Name, folder+"/")
		if h.Typeflag == tar.TypeDir && (below || h.Name == folder) {
			if name = strings.TrimSuffix(name, "/"); name == "" || h.Name == folder || clean(name) {
				continue
			}
		}
		if !below || h.Typeflag != tar.TypeReg || !clean(name) {
			return r, fmt.Errorf("entry %.200q, expected files and folders below %s alone", h.Name, folder)
		}
		if _, twice := found[name]; twice || (name == checksumsFile && checksums != nil) {
			return r, fmt.Errorf("file %s is in it twice", name)
		}
		digest := sha256.New()
		var into io.Writer = digest
		var keep *capped
		switch name {
		case manifestFile:
			keep = &capped{left: maxManifest}
		case checksumsFile:
			keep = &capped{left: maxChecksums}
		}
		if keep != nil {
			into = io.MultiWriter(digest, keep)
		}
		n, err := io.Copy(into, t)
		if err != nil {
			return r, damaged(fmt.Errorf("file %s: %w", name, err))
		}
		r.Files++
		r.Bytes += n
		switch name {
		case checksumsFile:
			checksums = keep.kept
			if checksums == nil {
				checksums = []byte{}
			}
			continue // it has no checksum of its own
		case manifestFile:
			manifest = keep.kept
		}
		found[name] = hex.EncodeToString(digest.Sum(nil))
	}
	// What is behind the archive's end belongs to the file that gzip vouches for.
	if _, err := io.Copy(io.Discard, z); err != nil {
		return r, damaged(err)
	}
	if checksums == nil {
		return r, fmt.Errorf("there is no %s in it: it was cut off, or is no bundle", checksumsFile)
	}
	sums, err := parseSums(checksums)
	if err != nil {
		return r, err
	}
	if err := compare(sums, found); err != nil {
		return r, err
	}
	if manifest == nil {
		return r, fmt.Errorf("there is no %s in it", manifestFile)
	}
	if r.Manifest, err = parseManifest(manifest); err != nil {
		return r, err
	}
	for _, name := range r.Manifest.files() {
		if _, ok := found[name]; !ok {
			return r, fmt.Errorf("%s names %s, which is missing", manifestFile, name)
		}
	}
	return r, nil
}

func damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it was cut off: %w", err)
	}
	return fmt.Errorf("it is damaged: %w", err)
}

// compare names the first file, by name, that is wrong.
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

// capped keeps what is written to it, up to a bound, and refuses more.
type capped struct {
	kept []byte
	left int
}

func (c *capped) Write(b []byte) (int, error) {
	if len(b) > c.left {
		return 0, errors.New("it is larger than any that is written")
	}
	c.left -= len(b)
	c.kept = append(c.kept, b...)
	return len(b), nil
}
