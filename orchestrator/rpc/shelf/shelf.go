package shelf

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// keptFor is how long an archive can be fetched.
const keptFor = time.Hour

// Shelf keeps the newest archive in a folder of its own until it is fetched no more.
type Shelf struct {
	folder string
	what   string // it keeps: archive, bag
	again  string // what to do where it is gone
	busy   chan struct{}
	mu     sync.Mutex
	kept   *kept
}

type kept struct {
	key, path, name string
	until           *time.Timer
}

// New is a shelf for archives in a folder, whose content is removed where it has any. An
// empty folder makes none, and [Shelf.Work] refuses. what is what it keeps, and again what to
// do where that is gone, as words of sentences.
func New(folder, what, again string) *Shelf {
	return &Shelf{folder: folder, what: what, again: again, busy: make(chan struct{}, 1)}
}

// Folder is where archives are made.
func (s *Shelf) Folder() string { return s.folder }

// Clear removes what is in the folder, also of an earlier process, and makes it anew: one
// that only this user may enter.
func (s *Shelf) Clear() error {
	if s.folder == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clearLocked()
}

func (s *Shelf) clearLocked() error {
	if s.kept != nil {
		s.kept.until.Stop()
		s.kept = nil
	}
	if err := os.RemoveAll(s.folder); err != nil {
		return err
	}
	return os.Mkdir(s.folder, 0o700)
}

// Keep has a file of the folder fetched under a name by who has the key that it returns.
func (s *Shelf) Keep(at, name string) (key string) {
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

// Download answers a GET with the archive of a key. Who reads it when it is removed has it to
// its end.
func (s *Shelf) Download(w http.ResponseWriter, r *http.Request) {
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

func (s *Shelf) open(key string) (*os.File, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil || subtle.ConstantTimeCompare([]byte(key), []byte(s.kept.key)) != 1 {
		return nil, "", fmt.Errorf("this %s is not here any more: one is kept for an hour, and until the next one is made; %s", s.what, s.again)
	}
	f, err := os.Open(s.kept.path)
	if err != nil {
		return nil, "", errors.New("the " + s.what + " was removed from the orchestrator's disk: " + s.again)
	}
	return f, s.kept.name, nil
}

// Scrap is a folder for files on their way into the archive.
func (s *Shelf) Scrap(name string) (dir string, err error) {
	dir = filepath.Join(s.folder, name)
	return dir, os.Mkdir(dir, 0o700)
}
