package telemetry

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

	"linktrial/executor/journal"
	"linktrial/internal/radio"
)

// maxDocument is the longest answer that is read, in bytes.
const maxDocument = 1 << 20

func readHTTP(ctx context.Context, t *radio.Telemetry, host string) ([]journal.Reading, error) {
	place := hostPort(host, t.Port)
	u := url.URL{Scheme: "http", Host: place}
	if t.TLS {
		u.Scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String()+t.Path, nil)
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
		return nil, fmt.Errorf("HTTP at %s answers %s for %s", place, res.Status, t.Path)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err != nil {
		return nil, describeError("HTTP", place, err)
	}
	if len(body) > maxDocument {
		return nil, fmt.Errorf("HTTP at %s answers more than %d bytes for %s", place, maxDocument, t.Path)
	}
	values, err := numbers(body, t.Values)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", t.Path, place, err)
	}
	return values, nil
}

// numbers takes figures from a JSON document.
func numbers(body []byte, want []radio.TelemetryValue) ([]journal.Reading, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	out := make([]journal.Reading, len(want))
	for i, v := range want {
		found, err := resolve(doc, v.Pointer)
		if err != nil {
			return nil, fmt.Errorf("%s (%s): %w", v.Name, v.Pointer, err)
		}
		x, err := number(found)
		if err != nil {
			return nil, fmt.Errorf("%s (%s): %w", v.Name, v.Pointer, err)
		}
		if out[i], err = reading(&want[i], x*v.Scale); err != nil {
			return nil, fmt.Errorf("%s (%s): %w", v.Name, v.Pointer, err)
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
		f, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
		if err != nil {
			return 0, fmt.Errorf("expected a number, found the text %q", x[:min(len(x), 40)])
		}
		return f, nil
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
