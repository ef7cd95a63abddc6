package web

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHandler(t *testing.T) {
	script := strings.Repeat("console.log(1);", 100)
	h, err := handler(fstest.MapFS{
		"index.html":      {Data: []byte("<!doctype html><title>Linktrial</title>")},
		"assets/app-1.js": {Data: []byte(script)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		method, path string
		code         int
		contains     string
		cache        string
	}{
		{"GET", "/", 200, "Linktrial", "no-cache"},
		{"GET", "/results/abc?axis=size", 200, "Linktrial", "no-cache"},
		{"GET", "/assets/app-1.js", 200, "console.log", "public, max-age=31536000, immutable"},
		{"GET", "/assets/app-2.js", 404, "not found", ""},
		{"GET", "/favicon.ico", 404, "not found", ""},
		{"GET", "/../../etc/passwd", 200, "Linktrial", "no-cache"},
		{"POST", "/linktrial.v1.NewService/Call", 404, "not found", ""},
		{"POST", "/", 405, "only read", ""},
	} {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest(x.method, x.path, nil))
		if r.Code != x.code || !strings.Contains(r.Body.String(), x.contains) || x.cache != "" && r.Header().Get("Cache-Control") != x.cache {
			t.Errorf("%s %s: %d, %q, cache %q", x.method, x.path, r.Code, r.Body.String(), r.Header().Get("Cache-Control"))
		}
	}
	req := httptest.NewRequest(http.MethodGet, "/assets/app-1.js", nil)
	req.Header.Set("Accept-Encoding", "gzip, br")
	r := httptest.NewRecorder()
	h.ServeHTTP(r, req)
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		t.Fatalf("not compressed: %v", err)
	}
	b, err := io.ReadAll(z)
	if err != nil || string(b) != script {
		t.Errorf("decompressed to %q (%v)", b, err)
	}
}

func TestNotBuilt(t *testing.T) {
	if _, err := handler(fstest.MapFS{".keep": {}}); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("got %v, expected that the UI is not built", err)
	}
}

// What the handbook does not have is no route of the application, and its files bring in
// nothing but each other.
func TestHandbook(t *testing.T) {
	h, err := handbook(fstest.MapFS{
		"index.html":                {Data: []byte("<!doctype html><title>Linktrial</title>")},
		"docs/plans.html":           {Data: []byte("<title>Plans</title>")},
		"docs/decisions/index.html": {Data: []byte("<title>Decisions</title>")},
		"docs/pictures/radio.svg":   {Data: []byte("<svg/>")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		method, path string
		code         int
		contains     string
		kind         string
	}{
		{"GET", "/handbook/", 200, "Linktrial", "text/html; charset=utf-8"},
		{"GET", "/handbook/docs/plans.html", 200, "Plans", "text/html; charset=utf-8"},
		{"GET", "/handbook/docs/pictures/radio.svg", 200, "<svg/>", "image/svg+xml"},
		{"GET", "/handbook/docs/plans", 404, "not found", ""},
		{"GET", "/handbook/docs/decisions/", 404, "not found", ""},
		{"GET", "/handbook/../embed.go", 404, "not found", ""},
		{"POST", "/handbook/", 405, "only read", ""},
	} {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest(x.method, x.path, nil))
		if r.Code != x.code || !strings.Contains(r.Body.String(), x.contains) || x.kind != "" && r.Header().Get("Content-Type") != x.kind {
			t.Errorf("%s %s: %d, %q, %s", x.method, x.path, r.Code, r.Body.String(), r.Header().Get("Content-Type"))
		}
		const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
		if got := r.Header().Get("Content-Security-Policy"); x.code == 200 && (got != policy || r.Header().Get("X-Content-Type-Options") != "nosniff") {
			t.Errorf("%s: policy %q", x.path, got)
		}
	}
	if _, err := handbook(fstest.MapFS{".keep": {}}); !errors.Is(err, ErrNoHandbook) {
		t.Errorf("got %v, expected that there is no handbook", err)
	}
}
