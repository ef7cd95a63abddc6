package telemetrysource

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// page is a source at an HTTP server that answers by h.
func page(t *testing.T, h http.HandlerFunc, values ...Value) Source {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return Source{Name: "page", Kind: KindHTTP, Host: "127.0.0.1", Port: port(t, s.Listener.Addr()), Settings: &HTTP{Path: "/x"}, Values: values}
}

func TestHTTP(t *testing.T) {
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
	}
	snr := Value{Name: "snr", Place: "/radio/0/a~1b", Unit: "dB", Scale: 0.1}
	for _, c := range []struct {
		handler http.HandlerFunc
		want    string
	}{
		{answer(`{"radio":[{"a/b":125}]}`), "page snr=12.5 dB"},
		{answer(`{"radio":[{"a/b":" 30 "}]}`), "page snr=3 dB"},
		{answer(`{"radio":[{"a/b":true}]}`), "page snr=0.1 dB"},
		{answer(`{"radio":[]}`), `snr (/radio/0/a~1b): the list there has 0 elements, and none "0"`},
		{answer(`{}`), `the answer has no "radio" there`},
		{answer(`{"radio":7}`), `nothing is below a single value, "0" was looked for`},
		{answer(`{"radio":[{"a/b":"loud"}]}`), `expected a number, found the text "loud"`},
		{answer(`{"radio":[{"a/b":null}]}`), "expected a number, found null"},
		{answer(`{"radio":[{"a/b":1e999}]}`), "value out of range"},
		{answer(`<html>`), "the answer is not JSON"},
		{answer(strings.Repeat(" ", maxDocument+1)), "more than 1048576 bytes"},
		{http.NotFound, "answers 404 Not Found for /x"},
		{func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, "answers 302 Found"},
	} {
		if got := check(t, Node{}, page(t, c.handler, snr)); !strings.Contains(got, c.want) {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

// FuzzNumbers: any document gives finite readings of all that was asked for, or an error.
func FuzzNumbers(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b/c":"2.5"}]}`), "/a/1/b~1c")
	f.Add([]byte(`7`), "")
	f.Fuzz(func(t *testing.T, body []byte, pointer string) {
		if pointer != "" && pointer[0] != '/' {
			return // a profile cannot have it
		}
		out, err := numbers(body, []Value{{Name: "x", Place: pointer, Scale: 2}})
		if err == nil && len(out) != 1 {
			t.Errorf("%v", out)
		}
	})
}
