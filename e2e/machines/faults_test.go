package machines

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"linktrial/agents/identity"
	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/agentprotocol"
	wire "linktrial/internal/identity"
	"linktrial/orchestrator/server"
)

// The error of a refused enrolment is one sentence with the reason, and the node is
// not changed.
func TestRefusedEnrolments(t *testing.T) {
	o := serve(t, nil)
	plain := serve(t, func(c *server.Config) { c.TLS = false })
	other := serve(t, nil)
	for name, c := range map[string]struct {
		url     string // default: the orchestrator's
		token   func(t *testing.T) wire.Token
		skew    time.Duration // of the node's clock
		words   []string
		another bool // trying again may help
	}{
		"unknown token": {token: func(*testing.T) wire.Token {
			return wire.NewToken("client", wire.Fingerprint(o.Authority().Certificate()))
		}, words: []string{"the token is refused: it is not one that this orchestrator made", "linktrial node token"}},
		"used token": {token: func(t *testing.T) wire.Token {
			tok := o.token(t, "used")
			_, err := identity.Enrol(t.Context(), newNode(t).enrolment(o.URL(), tok))
			require.NoError(t, err)
			return tok
		}, words: []string{"it was used already", "from 127.0.0.1", "linktrial node revoke used"}},
		"expired token": {token: func(t *testing.T) wire.Token {
			tok, _, err := o.Authority().CreateToken(t.Context(), "late", time.Second, "a test")
			require.NoError(t, err)
			o.clock.move(2 * time.Second)
			return tok
		}, words: []string{"it expired at", "linktrial node token --name late"}},
		"withdrawn token": {token: func(t *testing.T) wire.Token {
			tok := o.token(t, "gone")
			_, _, err := o.Authority().Revoke(t.Context(), "gone", "a test", "")
			require.NoError(t, err)
			return tok
		}, words: []string{"it was withdrawn at", "when the node was revoked"}},
		"token of another orchestrator": {token: func(t *testing.T) wire.Token { return other.token(t, "client") },
			words: []string{"is not the orchestrator of the authority that is trusted here", other.Authority().Fingerprint(), "make the token at that orchestrator"}},
		"http to TLS": {url: strings.Replace(o.URL(), "https", "http", 1), token: func(t *testing.T) wire.Token { return o.token(t, "client") },
			words: []string{"expected a URL that begins with https://"}},
		"https to plain": {url: "https://" + plain.Addr(), token: func(t *testing.T) wire.Token { return o.token(t, "client") },
			words: []string{"speaks plain HTTP and was asked with TLS", "http://" + plain.Addr()}},
		"clock a year ahead": {skew: 365 * day, token: func(t *testing.T) wire.Token { return o.token(t, "client") },
			words: []string{"this machine's clock says", "ahead of", "36", "days", "timedatectl"}},
		"clock a year behind": {skew: -365 * day, token: func(t *testing.T) wire.Token { return o.token(t, "client") },
			words: []string{"this machine's clock says", "behind", "36", "days", "timedatectl"}},
		"nobody there": {url: "https://127.0.0.1:9", token: func(t *testing.T) wire.Token { return o.token(t, "client") },
			words: []string{"enrol at https://127.0.0.1:9", "refused"}, another: true},
	} {
		t.Run(name, func(t *testing.T) {
			n, url := newNode(t), c.url
			if url == "" {
				url = o.URL()
			}
			tok := c.token(t)
			n.clock.move(c.skew)
			_, err := identity.Enrol(t.Context(), n.enrolment(url, tok))
			says(t, err, 0, c.words...)
			require.Equal(t, !c.another, errors.Is(err, identity.ErrRefused), "%v", err)
			require.NotContains(t, err.Error(), tok.String(), "secrets stay out of errors")
			n.bare(t)
			if c.skew != 0 {
				n.clock.move(-c.skew)
				_, err = identity.Enrol(t.Context(), n.enrolment(url, tok))
				require.NoError(t, err, "the token was not used up")
			}
		})
	}
	_, _, err := plain.Authority().CreateToken(t.Context(), "client", 0, "a test")
	says(t, err, 0, "this orchestrator asks no node who it is")
}

// A refused certificate is refused at each call, with one sentence.
func TestRefusedCertificates(t *testing.T) {
	o := serve(t, nil)
	ctx := t.Context()

	_, client := enrolled(t, o, "client")
	good := caller(t, o, client)
	_, err := good.Register(ctx, registration("client"))
	require.NoError(t, err)

	_, err = good.Register(ctx, registration("server"))
	says(t, err, connect.CodePermissionDenied, `the certificate is client's and the call is made for "server"`, "a node speaks only for itself")
	_, err = good.Deliver(ctx, connect.NewRequest(&linktrialv1.DeliverRequest{Name: "server", RunId: "x"}))
	says(t, err, connect.CodePermissionDenied, "a node speaks only for itself")

	bare := client.TLS()
	bare.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return new(tls.Certificate), nil }
	_, err = call(t, o, bare).Clock(ctx, connect.NewRequest(&linktrialv1.ClockRequest{}))
	says(t, err, connect.CodeUnauthenticated, "enrolled nodes only", "linktrial node enrol")

	// The certificate of another authority, presented to this orchestrator.
	another := serve(t, nil)
	_, foreign := enrolled(t, another, "client")
	mixed := client.TLS()
	mixed.GetClientCertificate = foreign.TLS().GetClientCertificate
	_, err = call(t, o, mixed).Register(ctx, registration("client"))
	says(t, err, connect.CodeUnauthenticated, "is of another authority", o.Authority().Fingerprint())
	// A node that reaches another orchestrator than its own notices that.
	_, err = call(t, another, client.TLS()).Register(ctx, registration("client"))
	says(t, err, connect.CodeUnavailable, wire.ErrOtherAuthority.Error())

	_, relay := enrolled(t, o, "relay")
	late := caller(t, o, relay)
	_, err = late.Register(ctx, registration("relay"))
	require.NoError(t, err)
	o.clock.move(31 * day)
	_, err = late.Register(ctx, registration("relay"))
	says(t, err, connect.CodeUnauthenticated, "the certificate of relay expired at", "the orchestrator's clock says")
	require.Equal(t, linktrialv1.NodeIdentity_STATE_EXPIRED, states(t, o)["relay"].State)
	o.clock.move(-31 * day)
	o.restart(t)
	o.clock.move(31 * day)
	_, err = late.Register(ctx, registration("relay"))
	says(t, err, connect.CodeUnauthenticated, "the certificate of relay expired at")
}

// A certificate that is not in the store is refused, though the authority signed it.
func TestUnrecordedCertificate(t *testing.T) {
	o := serve(t, nil)
	_, id := enrolled(t, o, "client")
	fresh := serve(t, func(c *server.Config) { c.DataDir = o.cfg.DataDir }) // the same authority, an empty database
	_, err := call(t, fresh, id.TLS()).Register(t.Context(), registration("client"))
	says(t, err, connect.CodeUnauthenticated, "is not in this orchestrator's records", "enrol the node again")
}

// A node whose clock is off cannot check the orchestrator's certificate, and
// says so; the orchestrator's refusals say so too.
func TestSessionWithWrongClock(t *testing.T) {
	o := serve(t, nil)
	n, _ := enrolled(t, o, "client")
	for name, c := range map[string]struct {
		skew  time.Duration
		words []string
	}{
		"a year ahead":  {365 * day, []string{"ahead of it; set the one that is wrong"}},
		"a year behind": {-365 * day, []string{"behind it; set the one that is wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			skewed := newClock()
			skewed.move(c.skew)
			id, err := identity.Load(n.dir, skewed.now)
			require.NoError(t, err)
			log := &logged{}
			run(t, o.URL(), "client", id, log, func() {
				eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "this machine's clock says") })
			})
			for _, w := range c.words {
				require.Contains(t, log.String(), w)
			}
		})
	}
	t.Run("the certificate has ended for the orchestrator alone", func(t *testing.T) {
		behind := newClock() // it stays where both are now
		id, err := identity.Load(n.dir, behind.now)
		require.NoError(t, err)
		o.clock.move(31 * day)
		defer o.clock.move(-31 * day)
		log := &logged{}
		run(t, o.URL(), "client", id, log, func() {
			eventually(t, "the log says so", func() bool { return strings.Contains(log.String(), "the certificate of client expired at") })
		})
		require.Contains(t, log.String(), "refuses this node")
		require.Contains(t, log.String(), "behind it; set the one that is wrong")
	})
}

// run holds a session while f runs.
func run(t *testing.T, url, name string, id *identity.Identity, log *logged, f func()) {
	t.Helper()
	s, err := session.New(session.Config{URL: url, Name: name, Version: "v-agent", Identity: id, Incarnation: "one", Logger: log.logger()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, func() *linktrialv1.RegisterRequest { return registration(name).Msg }, func(session.Answer) bool { return false })
	}()
	defer func() {
		cancel()
		<-done
		s.Close()
	}()
	f()
}

// The error of a call with the wrong scheme names the right one.
func TestSessionOnTheWrongScheme(t *testing.T) {
	o := serve(t, nil)
	plain := serve(t, func(c *server.Config) { c.TLS = false })
	_, id := enrolled(t, o, "client")
	for url, want := range map[string]string{
		"http://" + o.Addr():      "speaks TLS and was asked without: its URL is https://" + o.Addr(),
		"https://" + plain.Addr(): "speaks plain HTTP and was asked with TLS: its URL is http://" + plain.Addr(),
	} {
		log := &logged{}
		run(t, url, "client", id, log, func() {
			eventually(t, "the log says "+want, func() bool { return strings.Contains(log.String(), want) })
		})
	}
	_, err := session.New(session.Config{URL: o.URL(), Name: "client"})
	says(t, err, 0, "the node is not enrolled")
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer browser.CloseIdleConnections()
	res, err := browser.Get("http://" + o.Addr() + "/runs?x=1")
	require.NoError(t, err)
	res.Body.Close()
	require.Equal(t, "https://"+o.Addr()+"/runs?x=1", res.Header.Get("Location"))
	res, err = browser.Post("http://"+o.Addr()+"/", "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
}

// The error for incompatible versions names both.
func TestIncompatibleVersions(t *testing.T) {
	for name, tls := range map[string]bool{"TLS": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			log := &logged{}
			o := serve(t, func(c *server.Config) { c.TLS, c.Logger = tls, slog.New(slog.NewTextHandler(log, nil)) })
			c := plainCaller(t, o)
			if tls {
				_, id := enrolled(t, o, "client")
				c = caller(t, o, id)
			}
			r := registration("client")
			r.Msg.Protocol = 99
			_, err := c.Register(t.Context(), r)
			_, again := c.Register(t.Context(), r)
			says(t, again, connect.CodeFailedPrecondition, "install the same version on both")
			require.Equal(t, 1, strings.Count(log.String(), "agent of another version refused"), "the director's log says it once")
			says(t, err, connect.CodeFailedPrecondition, "the agent's version v-agent speaks protocol 99 and this orchestrator's version v-orchestrator protocol 2: install the same version on both")
			r.Msg.Protocol = 0 // before the number was told, and before assignments were signed
			_, err = c.Register(t.Context(), r)
			says(t, err, connect.CodeFailedPrecondition, "the agent's version v-agent speaks protocol 1 and this orchestrator's version v-orchestrator protocol 2: install the same version on both")
			r.Msg.Protocol = agentprotocol.Number
			res, err := c.Register(t.Context(), r)
			require.NoError(t, err)
			require.EqualValues(t, agentprotocol.Number, res.Msg.Protocol)
			p := poll("client", 0, 0)
			p.Msg.Protocol = 99
			_, err = c.Poll(t.Context(), p)
			says(t, err, connect.CodeNotFound, "register again")
		})
	}
}

// The guard compares the name in a message with the certificate's: every
// message of an agent must have it, or not be about a node at all.
func TestEveryCallNamesItsNode(t *testing.T) {
	nameless := map[string]bool{"ClockRequest": true}
	methods := linktrialv1.File_linktrial_v1_agent_proto.Services().ByName("AgentService").Methods()
	require.NotZero(t, methods.Len())
	for i := range methods.Len() {
		m := methods.Get(i)
		require.False(t, m.IsStreamingClient() || m.IsStreamingServer(), "%s: the guard knows no streams", m.FullName())
		f := m.Input().Fields().ByName("name")
		if nameless[string(m.Input().Name())] {
			require.Nil(t, f)
			continue
		}
		require.NotNil(t, f, "%s has no name of a node", m.Input().FullName())
		require.Equal(t, protoreflect.StringKind, f.Kind())
	}
}

// A damaged identity is refused as a whole.
func TestDamagedIdentity(t *testing.T) {
	o := serve(t, nil)
	a, _ := enrolled(t, o, "one")
	b, _ := enrolled(t, o, "two")
	read := func(n *node) []string {
		raw, err := os.ReadFile(filepath.Join(n.dir, identity.File))
		require.NoError(t, err)
		parts := strings.SplitAfter(string(raw), "-----\n")
		require.Len(t, parts, 7) // a BEGIN and an END line each, and what is after the last
		return []string{parts[0] + parts[1], parts[2] + parts[3], parts[4] + parts[5]}
	}
	one, two := read(a), read(b)
	for name, c := range map[string]struct{ text, want string }{
		"empty":                   {"", "expected a PRIVATE KEY"},
		"cut":                     {one[0] + one[1], "expected a PRIVATE KEY"},
		"another's key":           {two[0] + one[1] + one[2], "not for the key"},
		"no authority's":          {one[0] + one[1] + two[1], "not of the authority beside it"},
		"the authority's as ours": {one[0] + one[2] + one[2], "is not a node's"},
		"more":                    {one[0] + one[1] + one[2] + one[2], "expected a PRIVATE KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, identity.File), []byte(c.text), 0o600))
			_, err := identity.Load(dir, nil)
			says(t, err, 0, c.want, "enrol the node again", filepath.Join(dir, identity.File))
		})
	}
}
