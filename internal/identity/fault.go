package identity

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Explain puts the failure of a connection into a sentence that says what to
// do, where the cause is a matter of encryption; other errors are returned as
// they are. The original error stays wrapped.
func Explain(base string, err error) error {
	if err == nil {
		return nil
	}
	// These come from crypto/tls and net/http as text alone.
	text := err.Error()
	switch {
	case strings.HasPrefix(base, "http://") && (strings.Contains(text, "looked like an HTTP/1.1 header") || strings.Contains(text, "HTTP request to an HTTPS server") ||
		strings.Contains(text, "malformed HTTP response \"\\x15\\x03")):
		return &explained{fmt.Sprintf("the orchestrator at %s speaks TLS and was asked without: its URL is https://%s", base, strings.TrimPrefix(base, "http://")), err}
	case strings.HasPrefix(base, "https://") && (strings.Contains(text, "server gave HTTP response to HTTPS client") || strings.Contains(text, "first record does not look like a TLS handshake")):
		return &explained{fmt.Sprintf("the orchestrator at %s speaks plain HTTP and was asked with TLS: its URL is http://%s, or it is to be started on an address beyond its machine, without --open", base, strings.TrimPrefix(base, "https://")), err}
	}
	return err
}

type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.cause }

// IsTransport says whether an error was put into words by [Explain].
func IsTransport(err error) bool {
	var e *explained
	return errors.As(err, &e)
}

// PlainAnswers is a transport that tells, for an http URL, that the other end
// speaks TLS. It answers requests of HTTP/2 with a line of HTTP/1, in which the
// client of net/http sees a broken frame only.
type PlainAnswers struct {
	Base http.RoundTripper
	URL  string // of the orchestrator
}

// RoundTrip is [http.RoundTripper]'s.
func (p PlainAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := p.Base.RoundTrip(r)
	if err != nil {
		return nil, Explain(p.URL, err)
	}
	if res.StatusCode == http.StatusBadRequest && strings.HasPrefix(p.URL, "http://") && res.Header.Get("Content-Type") == "" {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 256))
		if strings.Contains(string(b), "HTTPS server") {
			res.Body.Close()
			return nil, Explain(p.URL, errors.New(strings.TrimSpace(string(b))))
		}
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(string(b)), res.Body), res.Body}
	}
	return res, nil
}
