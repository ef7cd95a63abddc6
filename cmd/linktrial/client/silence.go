package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// silentFor is how long nothing may arrive of an answer before the orchestrator is
	// asked whether it is there. Work for an answer can take longer.
	silentFor = 4 * time.Second
	// healthFor is how long that may take. The orchestrator waits 3 s for its database.
	healthFor = 4 * time.Second
	// maxHealth bounds the text of an answer to that, in bytes.
	maxHealth = 1000
)

// listener is a transport that says, while nothing arrives of an answer, whether the
// orchestrator is away: one that is stopped, or behind a cut cable, would have a command
// wait without a word. It ends no call.
type listener struct {
	next                 http.RoundTripper
	silentFor, healthFor time.Duration

	mu      sync.Mutex
	outages map[string]*Outage // of calls that bring none, by the orchestrator's place
}

func listening(next http.RoundTripper) *listener {
	return &listener{next: next, silentFor: silentFor, healthFor: healthFor, outages: map[string]*Outage{}}
}

type sayKey struct{}

// Saying returns a context whose calls say on the outage that the orchestrator does not
// answer, instead of on standard error.
func Saying(ctx context.Context, o *Outage) context.Context {
	return context.WithValue(ctx, sayKey{}, o)
}

func (l *listener) outage(r *http.Request) *Outage {
	for _, key := range []any{sayKey{}, waitKey{}} {
		if o, ok := r.Context().Value(key).(*Outage); ok {
			return o
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	at := place(r.URL)
	if l.outages[at] == nil {
		l.outages[at] = NewOutage(at, func(line string) { fmt.Fprintln(os.Stderr, line) })
	}
	return l.outages[at]
}

// RoundTrip is of all calls but those of agents, which have their own patience.
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/linktrial.v1.AgentService/") {
		return l.next.RoundTrip(r)
	}
	h := &hearing{l: l, outage: l.outage(r), heardAt: time.Now(), over: make(chan struct{})}
	go h.watch(r)
	res, err := l.next.RoundTrip(r)
	if err != nil {
		h.end()
		return nil, err
	}
	h.heard()
	res.Body = &heardBody{ReadCloser: res.Body, h: h}
	return res, nil
}

// CloseIdleConnections is called by http.Client.
func (l *listener) CloseIdleConnections() {
	if c, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// healthy returns nil where the orchestrator answers that all is well, and its own words
// where its database does not.
func (l *listener) healthy(r *http.Request) (text string, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), l.healthFor)
	defer cancel()
	u := *r.URL
	u.Path, u.RawPath, u.RawQuery = "/healthz", "", ""
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	res, err := l.next.RoundTrip(ask)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }() // it is read, or given up
	b, err := io.ReadAll(io.LimitReader(res.Body, maxHealth))
	if res.StatusCode == http.StatusServiceUnavailable {
		return strings.TrimSpace(string(b)), err
	}
	return "", err // whatever else it answers, it is there
}

// hearing is one call.
type hearing struct {
	l      *listener
	outage *Outage
	over   chan struct{} // closed when the call has ended

	mu      sync.Mutex
	heardAt time.Time
	told    bool
	ended   bool
}

func (h *hearing) watch(r *http.Request) {
	check := time.NewTimer(h.l.silentFor)
	defer check.Stop()
	for {
		select {
		case <-h.over:
			return
		case <-r.Context().Done():
			return
		case <-check.C:
		}
		since := h.last()
		if rest := h.l.silentFor - time.Since(since); rest > 0 {
			check.Reset(rest)
			continue
		}
		text, err := h.l.healthy(r)
		switch {
		case r.Context().Err() != nil:
		case err != nil && errors.Is(err, context.DeadlineExceeded):
			h.tell(since, "")
		case text != "":
			h.tell(since, text)
		case err == nil:
			h.heard() // it is there, and works on the answer
		}
		check.Reset(h.l.silentFor)
	}
}

func (h *hearing) last() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heardAt
}

// tell says so, unless something has arrived meanwhile.
func (h *hearing) tell(since time.Time, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended || h.heardAt != since {
		return
	}
	h.told = true
	h.outage.Silent(since, text)
}

// heard notes that something arrived.
func (h *hearing) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told {
		h.outage.Over()
	}
	h.heardAt, h.told = time.Now(), false
}

func (h *hearing) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.ended = true
		close(h.over)
	}
}

type heardBody struct {
	io.ReadCloser
	h *hearing
}

func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.h.heard()
	}
	if err != nil {
		b.h.end()
	}
	return n, err
}

func (b *heardBody) Close() error {
	b.h.end()
	return b.ReadCloser.Close()
}
