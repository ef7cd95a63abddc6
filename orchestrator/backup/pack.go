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
	"time"

	"linktrial/internal/atomicfile"
)

// pack writes the archive: the manifest first, then the files of the data folder,
// then the dump.
func pack(out io.Writer, m Manifest, dataDir, dump string) error {
	z := gzip.NewWriter(out)
	a := &archiveWriter{tar: tar.NewWriter(z), taken: m.Taken}
	doc, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := a.add(manifestFile, int64(len(doc)), 0o600, bytes.NewReader(doc)); err != nil {
		return err
	}
	for _, sub := range Folders {
		if err := a.addFolder(dataDir, sub); err != nil {
			return err
		}
	}
	if err := a.addFile(dumpFile, dump); err != nil {
		return err
	}
	if err := a.tar.Close(); err != nil {
		return err
	}
	return z.Close()
}

// archiveWriter writes the entries of a backup.
type archiveWriter struct {
	tar   *tar.Writer
	taken time.Time
}

func (a *archiveWriter) add(name string, size int64, mode fs.FileMode, from io.Reader) error {
	err := a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(folder, name), Size: size, Mode: int64(mode.Perm()), ModTime: a.taken, Format: tar.FormatPAX})
	if err == nil {
		_, err = io.Copy(a.tar, from)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (a *archiveWriter) addFile(name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return a.add(name, st.Size(), st.Mode(), f)
}

// addFolder adds a folder of the data folder. It leaves out what does not exist or
// is removed meanwhile, and files that are not complete.
func (a *archiveWriter) addFolder(dataDir, sub string) error {
	return filepath.WalkDir(filepath.Join(dataDir, sub), func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
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
		if err := a.addFile(path.Join(filesFolder, filepath.ToSlash(rel)), p); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
