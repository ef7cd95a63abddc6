package laptop

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// tar writes the package for other systems: one folder with what is in Debian's /usr, and a
// README.txt at its top.
func (t tree) tar(to string, p Package, modified time.Time, scrap string) error {
	readme := filepath.Join(scrap, "README-tar.txt")
	if err := t.writeReadme(readme, ""); err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	folder := "linktrial-" + p.Version
	if err := addToTar(w, path.Join(folder, "README.txt"), file{readme, 0o644}, modified); err != nil {
		return err
	}
	for _, name := range t.names() {
		if name == readmeFile {
			continue // its own is at the top
		}
		if err := addToTar(w, path.Join(folder, name), t[name], modified); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Sync()
}

func addToTar(w *tar.Writer, name string, from file, modified time.Time) error {
	f, err := os.Open(from.from)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: st.Size(), Mode: int64(from.mode & fs.ModePerm),
		Uname: "root", Gname: "root", ModTime: modified.Truncate(time.Second), Format: tar.FormatPAX})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
