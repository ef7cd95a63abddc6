package day

import (
	"archive/zip"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"
)

// keptFor is how long an archive can be fetched.
const keptFor = time.Hour

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

// shelf keeps the newest archive in a folder of its own until it is fetched no more.
type shelf struct {
	folder string
	mu     sync.Mutex
	kept   *kept
}

type kept struct {
	key, path, name string
	until           *time.Timer
}

// clear removes what is in the folder, also of an earlier process, and makes it anew: one
// that only this user may enter.
func (s *shelf) clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clearLocked()
}

func (s *shelf) clearLocked() error {
	if s.kept != nil {
		s.kept.until.Stop()
		s.kept = nil
	}
	if err := os.RemoveAll(s.folder); err != nil {
		return err
	}
	return os.Mkdir(s.folder, 0o700)
}

// keep has a file of the folder fetched under a name by who has the key that it returns.
func (s *shelf) keep(at, name string) (key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &kept{key: rand.Text(), path: at, name: name}
	k.until = time.AfterFunc(keptFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.kept == k {
			_ = s.clearLocked() // the next one tries again, and says why it cannot
		}
	})
	s.kept = k
	return k.key
}

// Download answers GET [DownloadPath] with the archive of a key. Who reads it when it is
// removed has it to its end.
func (s *shelf) Download(w http.ResponseWriter, r *http.Request) {
	f, name, err := s.open(r.URL.Query().Get("key"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Cache-Control", "no-store")
	http.ServeContent(w, r, "", time.Time{}, f)
}

func (s *shelf) open(key string) (*os.File, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || subtle.ConstantTimeCompare([]byte(key), []byte(s.kept.key)) != 1 {
		return nil, "", errors.New("this archive is not here any more: one is kept for an hour, and until the next one is made; close the day again")
	}
	f, err := os.Open(s.kept.path)
	if err != nil {
		return nil, "", errors.New("the archive was removed from the orchestrator's disk: close the day again")
	}
	return f, s.kept.name, nil
}

// scrap is a folder for files on their way into the archive.
func (s *shelf) scrap(name string) (dir string, err error) {
	dir = filepath.Join(s.folder, name)
	return dir, os.Mkdir(dir, 0o700)
}
