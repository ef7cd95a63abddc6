package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"linktrial/internal/atomicfile"
)

// pack writes the archive: the manifest and its signature first, then the files of the
// data folder, then the rows of the tables, which are in the folder staged.
func pack(out io.Writer, m *Manifest, dataDir, staged string, by Signer) error {
	// What the orchestrator may change meanwhile is read once.
	held := map[string][]byte{}
	for _, sub := range Folders {
		if err := m.addFolder(dataDir, sub, held); err != nil {
			return err
		}
	}
	for i := range m.Tables {
		if err := m.addTable(&m.Tables[i], staged); err != nil {
			return err
		}
	}
	doc, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	a := &archiveWriter{tar: tar.NewWriter(z), taken: m.Taken}
	if err := a.add(manifestFile, int64(len(doc)), 0o600, bytes.NewReader(doc)); err != nil {
		return err
	}
	signed := by.SignBackup(doc)
	if err := a.add(signatureFile, int64(len(signed)), 0o600, strings.NewReader(signed)); err != nil {
		return err
	}
	for _, f := range m.Files {
		if b, ok := held[f.Name]; ok {
			err = a.add(f.Name, f.Bytes, f.Mode, bytes.NewReader(b))
		} else {
			err = a.addFile(f.Name, filepath.Join(staged, filepath.FromSlash(f.Name)))
		}
		if err != nil {
			return err
		}
	}
	if err := a.tar.Close(); err != nil {
		return err
	}
	return z.Close()
}

// addTable lists the file with a table's rows.
func (m *Manifest) addTable(t *Table, staged string) error {
	f, err := os.Open(filepath.Join(staged, filepath.FromSlash(t.file())))
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	m.Files = append(m.Files, File{Name: t.file(), Bytes: n, Mode: 0o600, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// addFolder lists the files of a folder of the data folder, and reads them. It leaves
// out what does not exist or is removed meanwhile, and files that are not complete.
func (m *Manifest) addFolder(dataDir, sub string, held map[string][]byte) error {
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
		st, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Join(filesFolder, filepath.ToSlash(rel))
		sum := sha256.Sum256(b)
		m.Files = append(m.Files, File{Name: name, Bytes: int64(len(b)), Mode: st.Mode().Perm(), SHA256: hex.EncodeToString(sum[:])})
		held[name] = b
		return nil
	})
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
