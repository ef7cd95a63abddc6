package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"linktrial/internal/atomicfile"
)

// pack writes the archive.
func pack(out io.Writer, m Manifest, dataDir, dump string) error {
	z := gzip.NewWriter(out)
	t := tar.NewWriter(z)
	doc, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	add := func(name string, size int64, mode fs.FileMode, from io.Reader) error {
		err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, name), Size: size, Mode: int64(mode.Perm()), ModTime: m.Taken, Format: tar.FormatPAX})
		if err == nil {
			_, err = io.Copy(t, from)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if err := add(manifestFile, int64(len(doc)), 0o600, bytes.NewReader(doc)); err != nil {
		return err
	}
	file := func(name, from string) error {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		return add(name, st.Size(), st.Mode(), f)
	}
	for _, sub := range Folders {
		err := filepath.WalkDir(filepath.Join(dataDir, sub), func(p string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // nothing of it, or gone meanwhile
			}
			if err != nil {
				return err
			}
			if !d.Type().IsRegular() || atomicfile.Unfinished(p) {
				return nil
			}
			rel, err := filepath.Rel(dataDir, p)
			if err != nil {
				return err
			}
			if err := file(path.Join(filesFolder, filepath.ToSlash(rel)), p); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := file(dumpFile, dump); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}
