package notification_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/notification"
	"linktrial/orchestrator/store"
)

func TestChannelsRefused(t *testing.T) {
	d := newDesk(t).start()
	post := func(change func(s *notification.Settings)) notification.Channel {
		c := mailTo("x", 587, notification.StartTLS, "")
		change(&c.Settings)
		return c
	}
	for want, c := range map[string]notification.Channel{
		"in one line without blanks at its ends":            hook(" x", "http://a"),
		"expected at most 60":                               hook(strings.Repeat("x", 61), "http://a"),
		"has no settings":                                   {Name: "x"},
		"has a user or a password (the part before @)":      hook("x", "https://ada:hunter2@example.org/"),
		"is not complete":                                   hook("x", "ftp://example.org/"),
		"expected http or https with a host, such as":       hook("x", "http://"),
		"has a fragment":                                    hook("x", "http://a/#b"),
		`there is no kind "tea"`:                            {Name: "x", Kinds: []string{"tea"}, Way: notification.WayWebhook, Settings: notification.Settings{URL: "http://a"}},
		`host "a b"`:                                        post(func(s *notification.Settings) { s.Host = "a b" }),
		"port 70000":                                        post(func(s *notification.Settings) { s.Port = 70000 }),
		"security of the connection is not given":           post(func(s *notification.Settings) { s.Security = "" }),
		"would send the password of ada openly":             post(func(s *notification.Settings) { s.User, s.Security = "ada", notification.Plain }),
		"0 recipients, expected 1 to 20":                    post(func(s *notification.Settings) { s.To = nil }),
		`address "Ada <ada@example.org>"`:                   post(func(s *notification.Settings) { s.From = "Ada <ada@example.org>" }),
		`address "a@example.org\r\nBcc: b@example.org"`:     post(func(s *notification.Settings) { s.To = []string{"a@example.org\r\nBcc: b@example.org"} }),
		"the password of ada at the mail server is missing": post(func(s *notification.Settings) { s.User = "ada" }),
	} {
		_, err := d.n.Save(t.Context(), c, notification.Secret{})
		require.ErrorIs(t, err, notification.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, err := d.n.Save(t.Context(), mailTo("x", 25, notification.Plain, ""), notification.Secret{New: secret})
	require.ErrorContains(t, err, "a password is given without a user")
	_, err = d.n.Save(t.Context(), hook("x", "http://a"), notification.Secret{New: secret, Remove: true})
	require.ErrorIs(t, err, notification.ErrInvalid)
	all, err := d.n.Channels(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

// A change names the version that was edited, and a secret does not go to another place.
func TestChangeOfAChannel(t *testing.T) {
	d := newDesk(t).start()
	c := d.save(hook("chat", "http://127.0.0.1:1/"), secret)
	require.Equal(t, 1, c.Version)
	require.True(t, c.HasSecret)
	_, err := d.n.Save(t.Context(), hook("chat", "http://127.0.0.1:2/"), notification.Secret{})
	require.ErrorIs(t, err, notification.ErrChanged)
	moved := c
	moved.Settings.URL = "http://127.0.0.1:2/"
	_, err = d.n.Save(t.Context(), moved, notification.Secret{})
	require.ErrorContains(t, err, "now sends elsewhere than its secret was given for")
	c.Kinds = []string{"run-failed", "run-ended", "run-failed"}
	c = d.save(c, "")
	require.Equal(t, []string{"run-ended", "run-failed"}, c.Kinds)
	require.True(t, c.HasSecret)
	_, err = d.n.Save(t.Context(), moved, notification.Secret{New: secret})
	require.ErrorContains(t, err, "it is in version 2, and version 1 was edited")
	moved.Version = 2
	moved, err = d.n.Save(t.Context(), moved, notification.Secret{Remove: true})
	require.NoError(t, err)
	require.False(t, moved.HasSecret)
	require.NoError(t, d.n.Remove(t.Context(), "chat"))
	require.ErrorIs(t, d.n.Remove(t.Context(), "chat"), notification.ErrNotFound)
	_, err = d.n.Save(t.Context(), moved, notification.Secret{})
	require.ErrorIs(t, err, notification.ErrNotFound)
	for i := range 20 {
		d.save(hook(strings.Repeat("x", i+1), "http://127.0.0.1:1/"), "")
	}
	_, err = d.n.Save(t.Context(), hook("one more", "http://127.0.0.1:1/"), notification.Secret{})
	require.ErrorContains(t, err, "expected at most 20")
}

// The database has no secret in clear; without the key of the data folder a channel says what
// to do.
func TestSecretsOfChannelsAreSealed(t *testing.T) {
	d := newDesk(t).start()
	r := receive(t, nil)
	d.save(hook("chat", r.URL), secret)
	var row string
	var sealed []byte
	require.NoError(t, d.store.InTx(t.Context(), func(tx store.Conn) error {
		return tx.QueryRow(t.Context(), "SELECT row_to_json(c)::text, sealed FROM notification_channels c").Scan(&row, &sealed)
	}))
	require.NotContains(t, row, secret)
	require.NotEmpty(t, sealed)
	require.NotContains(t, string(sealed), secret)
	st, err := os.Stat(filepath.Join(d.data, "notification-channels", "sealing-key.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	d.n.Stop()
	kept := d.data
	d.data = t.TempDir()
	d.start()
	failure, err := d.n.Test(t.Context(), "chat")
	require.NoError(t, err)
	require.Contains(t, failure, "it was sealed with another key than this orchestrator's, as after a restore; give the secret again")
	require.Empty(t, r.got())
	d.n.Stop()
	d.data = kept
	d.start()
	failure, err = d.n.Test(t.Context(), "chat")
	require.NoError(t, err)
	require.Empty(t, failure)
}

// What was stored and not delivered when the orchestrator ended is delivered by the next one,
// each once; a channel that is off is told nothing, also later.
func TestDeliveriesGoOnAfterARestart(t *testing.T) {
	d := newDesk(t)
	d.limits.Try, d.limits.First, d.limits.Last = 30*time.Second, 10*time.Millisecond, 10*time.Millisecond
	d.start()
	slow := receive(t, func(w http.ResponseWriter, r *http.Request, before int) {
		if before == 0 {
			stalled(r.Context()) // until the orchestrator ends
		}
	})
	quiet := receive(t, nil)
	d.save(hook("slow", slow.URL), "")
	off := hook("quiet", quiet.URL)
	off.Off = true
	off = d.save(off, "")
	only := hook("only", quiet.URL)
	only.Kinds = []string{"waits-for-people"}
	d.save(only, "")
	d.end(d.run("camp"), "completed", "")
	all := d.told(2)
	eventually(t, "the first try is under way", func() bool { return len(slow.got()) == 1 })
	require.Equal(t, 2, d.channel("slow").State.Waiting)
	began := time.Now()
	d.n.Stop()
	require.Less(t, time.Since(began), 5*time.Second, "a try under way does not hold the stop")
	d.start()
	eventually(t, "both are delivered", func() bool { return d.channel("slow").State.Delivered == 2 })
	off.Off = false
	d.save(off, "")
	time.Sleep(500 * time.Millisecond)
	got := slow.got()
	require.Len(t, got, 3, "the one that was cut, and each once")
	require.Contains(t, got[1].header.Get("Linktrial-Delivery"), "-1")
	require.Equal(t, got[0].header.Get("Linktrial-Delivery"), got[1].header.Get("Linktrial-Delivery"))
	require.NotEqual(t, got[1].header.Get("Linktrial-Delivery"), got[2].header.Get("Linktrial-Delivery"))
	require.Empty(t, quiet.got())
	require.Len(t, all, 2)
}

// After a day a notification is given up, and the next one is tried.
func TestGivenUp(t *testing.T) {
	d := newDesk(t)
	d.limits.GiveUp = 500 * time.Millisecond
	d.start()
	bad := receive(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusBadGateway) })
	d.save(hook("bad", bad.URL), "")
	d.end(d.run("camp"), "completed", "")
	eventually(t, "both are given up", func() bool { return d.channel("bad").State.GivenUp == 2 })
	require.Equal(t, "the server answered 502 Bad Gateway, expected 2xx", d.channel("bad").State.Error)
	require.False(t, d.channel("bad").State.FailedAt.IsZero())
}
