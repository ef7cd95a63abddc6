package telemetrysource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"linktrial/internal/yamldoc"
)

// maxDocument is the longest answer that is read, in bytes.
const maxDocument = 1 << 20

// KindHTTP is a JSON document by GET.
const KindHTTP Kind = "http"

var httpKind = Definition{
	Kind: KindHTTP, Title: "HTTP", About: AboutRadio,
	Help: "a JSON document, by GET",
	Keys: []Key{
		{"target", "`radio`, a host, or host:port"},
		{"path", "such as `/status.json`"},
		{"tls", "true: by HTTPS, at port 443 unless stated"},
		{"values", "`{name, pointer}`, the pointer as in RFC 6901, with `unit`, `scale` and `counter`"},
	},
	Place: pointer, PlaceKey: "pointer", PlaceTitle: "Place in the answer",
	Poll: PollBetweenTrials, Interval: radioInterval, Port: 80,
	Remedy:   "see that the radio's page opens from this node at the address and path of the profile; or take the source out of the profile",
	settings: func() Settings { return &HTTP{} },
}

// HTTP is where a source's document is.
type HTTP struct {
	Path string `json:"path,omitempty"` // "/status.json"
	TLS  bool   `json:"tls,omitempty"`
}

func (h *HTTP) parse(m yamldoc.Mapping, s *Source) {
	if h.TLS = m.Field("tls").Bool(false); h.TLS {
		s.Port = 443
	}
	f := m.Field("path").Required()
	if h.Path = f.String(""); h.Path != "" && (h.Path[0] != '/' || strings.ContainsAny(h.Path, " #\x00\r\n\t")) {
		f.Problem(`expected a path such as "/status.json", found %q`, h.Path)
	}
}

func (h *HTTP) way(s *Source) string {
	title := httpKind.Title
	if h.TLS {
		title = "HTTPS"
	}
	return httpKind.at(s, title, h.Path)
}

// pointer is a JSON pointer, RFC 6901, section 3.
func pointer(v yamldoc.Value) string {
	s := v.String("")
	ok := (s == "" || s[0] == '/') && len(s) <= 256
	for i := range len(s) {
		ok = ok && (s[i] != '~' || i+1 < len(s) && (s[i+1] == '0' || s[i+1] == '1'))
	}
	if !ok {
		v.Problem(`expected a JSON pointer (RFC 6901) such as "/radio/snr", found %q`, s)
	}
	return s
}

func (h *HTTP) read(ctx context.Context, s *Source, host string, _ *Node) ([]Reading, error) {
	place := hostPort(host, s.Port)
	u := url.URL{Scheme: "http", Host: place}
	if h.TLS {
		u.Scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String()+h.Path, nil)
	if err != nil {
		return nil, fmt.Errorf("HTTP at %s: %w", place, err)
	}
	// A connection of its own, and no proxy: a radio that was switched off and on
	// must not be asked over a dead one, and it is nobody else's to answer.
	tr := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which the sentence has
		}
		return nil, describeError("HTTP", place, err)
	}
	defer func() { _ = res.Body.Close() }() // it was read as far as wanted
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP at %s answers %s for %s", place, res.Status, h.Path)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err != nil {
		return nil, describeError("HTTP", place, err)
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("HTTP at %s answers more than %d bytes for %s", place, maxDocument, h.Path)
	}
	values, err := numbers(body, s.Values)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", h.Path, place, err)
	}
	return values, nil
}

// numbers takes values from a JSON document.
func numbers(body []byte, want []Value) ([]Reading, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	out := make([]Reading, len(want))
	for i, v := range want {
		found, err := resolve(doc, v.Place)
		if err != nil {
			return nil, fmt.Errorf("%s (%s): %w", v.Name, v.Place, err)
		}
		x, err := number(found)
		if err != nil {
			return nil, fmt.Errorf("%s (%s): %w", v.Name, v.Place, err)
		}
		if out[i], err = want[i].reading(x); err != nil {
			return nil, fmt.Errorf("%s (%s): %w", v.Name, v.Place, err)
		}
	}
	return out, nil
}

// number takes a number, text that reads as one, or a truth as 1 and 0.
func number(v any) (float64, error) {
	switch x := v.(type) {
	case json.Number:
		return x.Float64()
	case string:
		return numberIn(x)
	case bool:
		if x {
			return 1, nil
		}
		return 0, nil
	case nil:
		return 0, errors.New("expected a number, found null")
	case []any:
		return 0, errors.New("expected a number, found a list")
	}
	return 0, errors.New("expected a number, found an object")
}

// resolve follows a JSON pointer (RFC 6901, section 4).
func resolve(doc any, pointer string) (any, error) {
	if pointer == "" {
		return doc, nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch x := doc.(type) {
		case map[string]any:
			v, there := x[token]
			if !there {
				return nil, fmt.Errorf("the answer has no %q there", token)
			}
			doc = v
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(x) || strconv.Itoa(i) != token {
				return nil, fmt.Errorf("the list there has %d elements, and none %q", len(x), token)
			}
			doc = x[i]
		default:
			return nil, fmt.Errorf("nothing is below a single value, %q was looked for", token)
		}
	}
	return doc, nil
}
