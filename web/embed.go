// Package web is the test director's web UI as the orchestrator serves it: the
// files that the build of src/ left in dist/, compressed once, with a fallback to
// the application's page for its own routes. Beside it is the handbook, which
// tools/handbook left in handbook/.
package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// dist is empty but for .keep where the UI was not built.
//
//go:embed all:dist
var dist embed.FS

// documents is empty but for .keep where the handbook was not made.
//
//go:embed all:handbook
var documents embed.FS

// ErrNotBuilt says that this binary was built without the UI.
var ErrNotBuilt = errors.New("the web UI is not built into this binary: make web, then make build")

// ErrNoHandbook says that this binary was built without the handbook.
var ErrNoHandbook = errors.New("the handbook is not built into this binary: make build does that")

// HandbookPath is where the handbook is served.
const HandbookPath = "/handbook/"

// Content security policies. Everything comes from here: offline there is nothing else, and
// a plan's text can bring in nothing from elsewhere. The handbook has pictures, a style
// sheet and scripts as files, and nothing that is sent.
const (
	uiPolicy       = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	handbookPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

// Handler serves the UI, or returns [ErrNotBuilt].
func Handler() (http.Handler, error) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return handler(files)
}

func handler(files fs.FS) (http.Handler, error) {
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil, ErrNotBuilt
	}
	return &site{files: files, routes: true, policy: uiPolicy, ready: map[string]*asset{}}, nil
}

// Handbook serves the handbook below [HandbookPath], or returns [ErrNoHandbook].
func Handbook() (http.Handler, error) {
	files, err := fs.Sub(documents, "handbook")
	if err != nil {
		return nil, err
	}
	return handbook(files)
}

func handbook(files fs.FS) (http.Handler, error) {
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil, ErrNoHandbook
	}
	return http.StripPrefix(HandbookPath, &site{files: files, policy: handbookPolicy, ready: map[string]*asset{}}), nil
}

type site struct {
	files  fs.FS
	routes bool   // what names no file is a route of the application, on its page
	policy string // the content security policy

	mu    sync.Mutex
	ready map[string]*asset
}

type asset struct {
	kind     string
	plain    []byte
	squeezed []byte // nil where compression gains nothing
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/linktrial.v") {
		// A service that this version does not have; clients take 404 for just that.
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "pages are only read", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	hashed := strings.HasPrefix(name, "assets/")
	a, err := s.asset(name)
	switch {
	case err == nil && name != "":
	case hashed || name != "" && (!s.routes || strings.Contains(path.Base(name), ".")):
		// A file that is not there is no route: a page in its place would only
		// confuse whoever asked for a script.
		http.NotFound(w, r)
		return
	default:
		if a, err = s.asset("index.html"); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", s.policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	if hashed {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	b := a.plain
	if a.squeezed != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		b = a.squeezed
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

func (s *site) asset(name string) (*asset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.ready[name]; a != nil {
		return a, nil
	}
	b, err := fs.ReadFile(s.files, name)
	if err != nil {
		return nil, err
	}
	a := &asset{kind: mime.TypeByExtension(path.Ext(name)), plain: b}
	if a.kind == "" {
		a.kind = "application/octet-stream"
	}
	var z bytes.Buffer
	zw, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := zw.Write(b); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	if z.Len() < len(b)*9/10 {
		a.squeezed = z.Bytes()
	}
	s.ready[name] = a
	return a, nil
}
