package playbooks

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// aptProxy is the machines' only connection to other networks: it forwards GET requests
// of apt, and caches packages, which never change under their name.
type aptProxy struct {
	mu    sync.Mutex
	lists map[string][]byte // for as long as the test lasts
}

// startProxy listens in the control network and connects from the host's.
func (s *site) startProxy() {
	s.t.Helper()
	p := &aptProxy{lists: map[string][]byte{}}
	var l net.Listener
	err := process.InNamespace(namespace.Path(s.Namespace()), func() error {
		var err error
		l, err = net.Listen("tcp", "10.231.0.1:3142")
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	srv := &http.Server{Handler: p}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // until it is closed
	}()
	s.t.Cleanup(func() { srv.Close(); <-done })
}

func (p *aptProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Host == "" {
		http.Error(w, "only GET of apt", http.StatusForbidden)
		return
	}
	body, code, err := p.get(r.URL.String())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(code)
	w.Write(body)
}

func (p *aptProxy) get(url string) ([]byte, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, ok := p.lists[url]; ok {
		return b, http.StatusOK, nil
	}
	kept := ""
	if strings.HasSuffix(url, ".deb") {
		kept = filepath.Join(cache, "packages", filepath.Base(url))
		if b, err := os.ReadFile(kept); err == nil {
			return b, http.StatusOK, nil
		}
	}
	res, err := http.Get(url)
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return b, res.StatusCode, err
	}
	if kept == "" {
		p.lists[url] = b
		return b, res.StatusCode, nil
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return nil, 0, err
	}
	part := fmt.Sprintf("%s.%d", kept, os.Getpid())
	if err := os.WriteFile(part, b, 0o644); err != nil {
		return nil, 0, err
	}
	return b, res.StatusCode, os.Rename(part, kept)
}
