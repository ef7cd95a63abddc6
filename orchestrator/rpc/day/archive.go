package day

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path"
	"time"
)

// archive is a ZIP file that is being written. All of its names are in one folder.
type archive struct {
	file *os.File
	zip  *zip.Writer
	root string
	made time.Time
}

func newArchive(at, root string, made time.Time) (*archive, error) {
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &archive{file: f, zip: zip.NewWriter(f), root: root, made: made.UTC()}, nil
}

// add writes a file of the archive. One that is compressed already is stored as it is.
func (a *archive) add(name string, from io.Reader, compressed bool) error {
	h := &zip.FileHeader{Name: path.Join(a.root, name), Method: zip.Deflate, Modified: a.made}
	h.SetMode(0o600)
	if compressed {
		h.Method = zip.Store
	}
	w, err := a.zip.CreateHeader(h)
	if err == nil {
		_, err = io.Copy(w, from)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (a *archive) addFile(name, from string, compressed bool) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return a.add(name, f, compressed)
}

// end writes the archive's directory, and closes the file.
func (a *archive) end() (bytes int64, err error) {
	if err := a.zip.Close(); err != nil {
		return 0, err
	}
	if err := a.file.Sync(); err != nil {
		return 0, err
	}
	st, err := a.file.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), a.file.Close()
}
