package notification

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// message is what is delivered of a notification.
type message struct {
	id       int64
	kind     string
	at       time.Time
	title    string
	text     string
	campaign string
	run      string
	node     string
	urgent   bool
	path     string
}

// webhookBody is the JSON of a webhook; docs/notifications.md describes it.
type webhookBody struct {
	ID       int64     `json:"id"`
	Kind     string    `json:"kind"`
	Title    string    `json:"title"`
	Text     string    `json:"text"`
	At       time.Time `json:"at"`
	Campaign string    `json:"campaign,omitempty"`
	Run      string    `json:"run,omitempty"`
	Node     string    `json:"node,omitempty"`
	Urgent   bool      `json:"urgent"`
	Path     string    `json:"path"`
	URL      string    `json:"url,omitempty"` // of the page, where the orchestrator's own address is known
}

// maxAnswer is how much of a webhook's answer is read, in bytes; its text is not used.
const maxAnswer = 4096

// webhook delivers by HTTP.
type webhook struct {
	channel  *Channel
	identity string
	secret   string
	version  string
	pages    string // address of the pages; empty: not known
	now      func() time.Time
	client   *http.Client
}

// newHTTP returns a client that follows no redirect, asks no proxy, and keeps no connection.
func newHTTP(cfg *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sign returns the signature of a body sent at a time, in seconds of Unix time.
func sign(secret, timestamp string, body []byte) string {
	m := hmac.New(sha256.New, []byte(secret))
	_, _ = m.Write([]byte(timestamp + "."))
	_, _ = m.Write(body)
	return "sha256=" + hex.EncodeToString(m.Sum(nil))
}

// answerError is an answer that is no success.
type answerError struct {
	status int
	where  bool // it leads elsewhere
}

func (e *answerError) Error() string {
	text := fmt.Sprintf("the server answered %d %s, expected 2xx", e.status, http.StatusText(e.status))
	if e.where {
		text += "; a redirect is not followed: set the URL that it leads to"
	}
	return text
}

// lasting reports whether trying again hardly helps.
func (e *answerError) lasting() bool {
	return e.status >= 400 && e.status < 500 && e.status != http.StatusRequestTimeout && e.status != http.StatusTooManyRequests
}

// deliver implements deliverer.
func (w *webhook) deliver(ctx context.Context, all []message) error {
	for i := range all {
		if err := w.post(ctx, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *webhook) most() int { return 1 }

func (w *webhook) post(ctx context.Context, m *message) error {
	b := webhookBody{ID: m.id, Kind: m.kind, Title: m.title, Text: m.text, At: m.at.UTC(), Campaign: m.campaign, Run: m.run, Node: m.node, Urgent: m.urgent, Path: m.path}
	if w.pages != "" {
		b.URL = w.pages + m.path
	}
	body, err := json.Marshal(b)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.channel.Settings.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	timestamp := strconv.FormatInt(w.now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Linktrial/"+w.version)
	req.Header.Set("Linktrial-Delivery", deliveryID(w.identity, m.id))
	req.Header.Set("Linktrial-Timestamp", timestamp)
	if w.secret != "" {
		req.Header.Set("Linktrial-Signature", sign(w.secret, timestamp, body))
	}
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	// The status decides: who answers a gigabyte slowly is not listened to.
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return &answerError{status: res.StatusCode, where: res.StatusCode >= 300 && res.StatusCode < 400}
	}
	return nil
}

// deliveryID is the same whenever a notification is sent by a channel, and of nothing else.
func deliveryID(identity string, id int64) string { return fmt.Sprintf("%s-%d", identity, id) }
