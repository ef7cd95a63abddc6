package notification_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/notification"
)

const secret = "correct-horse-battery"

func TestWebhook(t *testing.T) {
	d := newDesk(t).start()
	r := receive(t, nil)
	d.save(hook("chat", r.URL+"/hook?x=1"), secret)
	run := d.run("camp")
	d.end(run, "stopped", "node a: disk is full")
	all := d.told(2)
	require.Equal(t, "run-failed", all[0].Kind)
	require.Contains(t, all[0].Title, "was stopped by a fault")
	require.Equal(t, "Node a: disk is full. 0 of 2 trials have ended.", all[0].Text)
	require.True(t, all[0].Urgent)
	require.Equal(t, "campaign-ended", all[1].Kind)
	require.Equal(t, "1 run: 1 stopped by a fault. The first reason: node a: disk is full.", all[1].Text)

	eventually(t, "both are delivered", func() bool { return len(r.got()) == 2 })
	got := r.got()[0]
	var body struct {
		ID                                              int64
		Kind, Title, Text, At, Campaign, Run, Path, URL string
		Urgent                                          bool
	}
	require.NoError(t, json.Unmarshal(got.body, &body))
	require.Equal(t, all[0].ID, body.ID)
	require.Equal(t, []string{"run-failed", all[0].Title, all[0].Text, "camp", run, "/runs/camp", "http://pages.example/runs/camp"},
		[]string{body.Kind, body.Title, body.Text, body.Campaign, body.Run, body.Path, body.URL})
	require.True(t, body.Urgent)

	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(got.header.Get("Linktrial-Timestamp") + "."))
	m.Write(got.body)
	require.Equal(t, "sha256="+hex.EncodeToString(m.Sum(nil)), got.header.Get("Linktrial-Signature"))
	require.Equal(t, "Linktrial/test", got.header.Get("User-Agent"))
	require.NotEqual(t, got.header.Get("Linktrial-Delivery"), r.got()[1].header.Get("Linktrial-Delivery"))
	eventually(t, "the state says so", func() bool { return d.channel("chat").State.Delivered == 2 })
	require.NotContains(t, d.log.String(), secret)
}

// A receiver that fails gets the same delivery again, and others get theirs meanwhile.
func TestWebhookFails(t *testing.T) {
	for name, x := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, before int)
		want   string
	}{
		"500": {func(w http.ResponseWriter, _ *http.Request, _ int) {
			http.Error(w, secret, http.StatusInternalServerError)
		}, "the server answered 500 Internal Server Error, expected 2xx"},
		"redirect": {func(w http.ResponseWriter, r *http.Request, _ int) {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}, "a redirect is not followed"},
		"cut":   {func(http.ResponseWriter, *http.Request, int) { panic(http.ErrAbortHandler) }, "EOF"},
		"hangs": {func(_ http.ResponseWriter, r *http.Request, _ int) { stalled(r.Context()) }, "no answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.limits.Try = 300 * time.Millisecond
			d.start()
			good := receive(t, nil)
			bad := receive(t, func(w http.ResponseWriter, r *http.Request, before int) {
				if before < 2 {
					x.answer(w, r, before)
				}
			})
			d.save(hook("bad", bad.URL+"/topsecretpath"), secret)
			d.save(hook("good", good.URL), "")
			d.end(d.run("camp"), "completed", "")
			eventually(t, "the error is shown", func() bool { return strings.Contains(d.channel("bad").State.Error, x.want) })
			eventually(t, "all are delivered", func() bool { return d.channel("bad").State.Delivered == 2 && d.channel("good").State.Delivered == 2 })
			got := bad.got()
			require.Len(t, got, 4)
			require.Equal(t, got[0].header.Get("Linktrial-Delivery"), got[2].header.Get("Linktrial-Delivery"))
			require.Equal(t, got[0].body, got[2].body, "order is kept")
			require.Len(t, good.got(), 2)
			require.Empty(t, good.got()[0].header.Get("Linktrial-Signature"))
			require.Empty(t, d.channel("bad").State.Error, "the last delivery succeeded")
			for _, text := range []string{secret, "topsecretpath"} {
				require.NotContains(t, d.log.String(), text)
			}
		})
	}
}

// What is refused for good is given up after few tries.
func TestWebhookGone(t *testing.T) {
	d := newDesk(t).start()
	gone := receive(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusGone) })
	d.save(hook("gone", gone.URL), "")
	d.end(d.run("camp"), "completed", "")
	eventually(t, "both are given up", func() bool { return d.channel("gone").State.GivenUp == 2 })
	require.Len(t, gone.got(), 10)
	s := d.channel("gone").State
	require.Equal(t, "the server answered 410 Gone, expected 2xx", s.Error)
	require.Zero(t, s.Waiting)
	require.True(t, s.NextTry.IsZero())
}

// An answer without end is not read.
func TestWebhookLongAnswer(t *testing.T) {
	d := newDesk(t).start()
	sent := 0
	r := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 1<<20)
		for range 1024 {
			if r.Context().Err() != nil {
				return
			}
			n, err := w.Write(block)
			sent += n
			if err != nil {
				return
			}
		}
	}))
	d.save(hook("long", r.URL), "")
	failure, err := d.n.Test(t.Context(), "long")
	require.NoError(t, err)
	require.Empty(t, failure)
	r.Close() // waits for the handler
	require.Less(t, sent, 64<<20)
}

func TestTestOfAChannel(t *testing.T) {
	d := newDesk(t).start()
	r := receive(t, func(w http.ResponseWriter, _ *http.Request, before int) {
		if before == 0 {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	d.save(hook("chat", r.URL), secret)
	failure, err := d.n.Test(t.Context(), "chat")
	require.NoError(t, err)
	require.Equal(t, "the server answered 418 I'm a teapot, expected 2xx", failure)
	failure, err = d.n.Test(t.Context(), "chat")
	require.NoError(t, err)
	require.Empty(t, failure)
	require.Contains(t, string(r.got()[1].body), `"kind":"test"`)
	_, err = d.n.Test(t.Context(), "none")
	require.ErrorIs(t, err, notification.ErrNotFound)
}
