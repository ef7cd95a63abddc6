package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

// answer serves one connection: a line for each request line; an empty answer hangs up.
func answer(t *testing.T, reply func(line string) string) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for sc := bufio.NewScanner(conn); sc.Scan(); {
			s := reply(sc.Text())
			if s == "" {
				return
			}
			if _, err := io.WriteString(conn, s); err != nil {
				return
			}
		}
	}()
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); l.Close(); <-done })
	return c
}

func TestRequestsAndReplies(t *testing.T) {
	var got []string
	c := answer(t, func(line string) string {
		got = append(got, line)
		switch {
		case strings.HasPrefix(line, `{"status"`):
			return `{"status":{"pid":7}}` + "\n"
		case strings.Contains(line, `"half"`):
			return `{"error":"packet log incomplete","report":{"duration_ns":5}}` + "\n"
		case strings.HasPrefix(line, `{"end"`):
			return `{"report":{"duration_ns":3,"ideal_ns":[2],"coded_bound_ns":[4]}}` + "\n"
		case strings.Contains(line, `"refuse"`):
			return `{"error":"no"}` + "\n"
		}
		return "{}\n"
	})
	ctx := t.Context()
	if err := c.Configure(ctx, &radio.Network{}); err != nil {
		t.Error(err)
	}
	if err := c.Begin(ctx, radiocontrol.Begin{Trial: "a", Seed: 1<<64 - 1}); err != nil {
		t.Error(err)
	}
	var refused *Refused
	if err := c.Begin(ctx, radiocontrol.Begin{Trial: "refuse"}); !errors.As(err, &refused) || refused.Message != "no" {
		t.Errorf("refusal: %v", err)
	}
	if r, err := c.End(ctx, "a"); err != nil || r.Duration != 3 || r.Ideal[0] != 2 || r.CodedBound[0] != 4 {
		t.Errorf("report %+v, %v", r, err)
	}
	if r, err := c.End(ctx, "half"); err == nil || r == nil || r.Duration != 5 {
		t.Errorf("report %+v, %v, expected both", r, err)
	}
	if s, err := c.Status(ctx); err != nil || s.PID != 7 {
		t.Errorf("status %+v, %v", s, err)
	}
	if len(got) != 6 || !strings.Contains(got[1], `"18446744073709551615"`) {
		t.Errorf("requests %q", got)
	}
}

func TestContextEndsWaiting(t *testing.T) {
	release := make(chan struct{})
	c := answer(t, func(string) string { <-release; return "{}\n" })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Status(ctx)
	close(release)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
	if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "broken earlier") {
		t.Errorf("a late reply would be taken for this one's: %v", err)
	}
}

func TestBrokenReplies(t *testing.T) {
	for reply, want := range map[string]string{"": "unexpected EOF", "nonsense\n": "reply", `{"status":null}` + "\n": "without a status"} {
		c := answer(t, func(string) string { return reply })
		if _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q", reply, err, want)
		}
	}
	if _, err := Dial(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("connected to nothing")
	}
}

func FuzzReply(f *testing.F) {
	b, err := json.Marshal(radiocontrol.Reply{Report: &radiocontrol.Report{Hops: []radiocontrol.Hop{{From: "client"}}, Ideal: []time.Duration{1}, CodedBound: []time.Duration{2}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"error":"x","status":{"network":{"links":[{"rate_bits_per_second":1e3}]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseReply(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseReply(again); err != nil {
			t.Fatalf("%s was read from %s, but is refused: %v", again, b, err)
		}
	})
}
