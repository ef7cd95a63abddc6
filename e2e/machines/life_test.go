package machines

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"linktrial/agents/identity"
	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	wire "linktrial/internal/identity"
	"linktrial/orchestrator/server"
)

func call(t testing.TB, o *orchestrator, cfg *tls.Config) linktrialv1connect.AgentServiceClient {
	t.Helper()
	p := new(http.Protocols)
	p.SetHTTP2(true)
	tr := &http.Transport{TLSClientConfig: cfg, Protocols: p}
	t.Cleanup(tr.CloseIdleConnections)
	return linktrialv1connect.NewAgentServiceClient(&http.Client{Transport: tr}, o.URL(), connect.WithGRPC())
}

func plainCaller(t testing.TB, o *orchestrator) linktrialv1connect.AgentServiceClient {
	t.Helper()
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p}
	t.Cleanup(tr.CloseIdleConnections)
	return linktrialv1connect.NewAgentServiceClient(&http.Client{Transport: tr}, "http://"+o.Addr(), connect.WithGRPC())
}

// From a token to a node that polls, with a restart of the orchestrator in between.
func TestEnrolment(t *testing.T) {
	o := serve(t, nil)
	tok := o.token(t, "client")
	require.Equal(t, linktrialv1.NodeIdentity_STATE_INVITED, states(t, o)["client"].State)
	n := newNode(t)
	told := 0
	e := n.enrolment(o.URL(), tok)
	e.Trust = func([]*linktrialv1.SigningKey) error { told++; return nil }
	id, err := identity.Enrol(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, "client", id.Name())
	require.Equal(t, 1, told)
	st, err := os.Stat(filepath.Join(n.dir, identity.File))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	left, err := os.ReadDir(n.dir)
	require.NoError(t, err)
	require.Len(t, left, 1, "nothing lies about: %v", left)

	again, err := identity.Load(n.dir, nil)
	require.NoError(t, err)
	require.Equal(t, id.Expires(), again.Expires())
	require.InDelta(t, 30*24, time.Until(id.Expires()).Hours(), 1)
	c := caller(t, o, again)
	_, err = c.Register(t.Context(), registration("client"))
	require.NoError(t, err)
	o.restart(t)
	eventually(t, "the node is known after a restart", func() bool {
		_, err := c.Poll(t.Context(), poll("client", 0, 0))
		return err == nil
	})
	s := states(t, o)["client"]
	require.Equal(t, linktrialv1.NodeIdentity_STATE_ENROLLED, s.State)
	require.True(t, s.Connected)
	require.False(t, s.OpenToken)
}

// After a lost answer the node enrols again with the same key and the same token.
func TestEnrolmentAfterLostAnswer(t *testing.T) {
	o := serve(t, nil)
	n := newNode(t)
	e := n.enrolment(o.URL(), o.token(t, "client"))
	lost := errors.New("the power fails here")
	e.Trust = func([]*linktrialv1.SigningKey) error { return lost }
	_, err := identity.Enrol(t.Context(), e)
	require.ErrorIs(t, err, lost)
	n.bare(t)
	e.Trust = nil
	id, err := identity.Enrol(t.Context(), e)
	require.NoError(t, err)
	_, err = caller(t, o, id).Register(t.Context(), registration("client"))
	require.NoError(t, err)
}

// A name that is enrolled twice is one node: its earlier certificate is revoked.
func TestEnrolledAgain(t *testing.T) {
	o := serve(t, nil)
	_, first := enrolled(t, o, "client")
	c := caller(t, o, first)
	_, err := c.Register(t.Context(), registration("client"))
	require.NoError(t, err)
	_, second := enrolled(t, o, "client")
	_, err = c.Register(t.Context(), registration("client"))
	says(t, err, connect.CodeUnauthenticated, "was revoked at", "the node enrolled again")
	_, err = caller(t, o, second).Register(t.Context(), registration("client"))
	require.NoError(t, err)
}

// Revocation takes effect at once, also for an open poll, and after a restart.
func TestRevocation(t *testing.T) {
	o := serve(t, nil)
	_, id := enrolled(t, o, "client")
	_, bystander := enrolled(t, o, "server")
	c, b := caller(t, o, id), caller(t, o, bystander)
	for name, c := range map[string]linktrialv1connect.AgentServiceClient{"client": c, "server": b} {
		_, err := c.Register(t.Context(), registration(name))
		require.NoError(t, err)
	}
	res, err := c.Poll(t.Context(), poll("client", 0, 0))
	require.NoError(t, err)
	open := o.token(t, "client")
	ended := make(chan error, 1)
	go func() {
		_, err := c.Poll(context.Background(), poll("client", 30*time.Second, res.Msg.Revision))
		ended <- err
	}()
	eventually(t, "the poll waits", func() bool { return states(t, o)["client"].Connected })
	time.Sleep(100 * time.Millisecond) // most likely it does by now; where not, the next call is refused all the same
	began := time.Now()
	certs, tokens, err := o.Authority().Revoke(t.Context(), "client", "ada", "laptop stolen")
	require.NoError(t, err)
	require.Equal(t, 1, certs)
	require.Equal(t, 1, tokens)
	err = <-ended
	says(t, err, connect.CodeUnauthenticated, "the certificate of client was revoked at", "by ada (laptop stolen)")
	require.Less(t, time.Since(began), 20*time.Second, "the poll ended with its certificate, and not by its time")
	for range 2 {
		_, err = c.Register(t.Context(), registration("client"))
		says(t, err, connect.CodeUnauthenticated, "was revoked at")
		_, err = identity.Enrol(t.Context(), newNode(t).enrolment(o.URL(), open))
		says(t, err, 0, "it was withdrawn at")
		_, err = b.Register(t.Context(), registration("server"))
		require.NoError(t, err, "others go on")
		s := states(t, o)["client"]
		require.Equal(t, linktrialv1.NodeIdentity_STATE_REVOKED, s.State)
		require.Equal(t, "ada", s.RevokedBy)
		o.restart(t)
	}
	_, _, err = o.Authority().Revoke(t.Context(), "client", "ada", "")
	says(t, err, 0, "no such node with a valid certificate or an open token")
	_, anew := enrolled(t, o, "client")
	_, err = caller(t, o, anew).Register(t.Context(), registration("client"))
	require.NoError(t, err)
}

// How long a node still has once it is revoked: until the call that waits has ended, and
// until a further call on the same connection was refused. docs/security-nodes.md has the values.
func TestTimeUntilRevokedNodeIsCutOff(t *testing.T) {
	const rounds = 20
	o := serve(t, nil)
	var waiting, next []time.Duration
	for i := range rounds {
		name := fmt.Sprintf("node-%d", i)
		_, id := enrolled(t, o, name)
		c := caller(t, o, id)
		_, err := c.Register(t.Context(), registration(name))
		require.NoError(t, err)
		res, err := c.Poll(t.Context(), poll(name, 0, 0))
		require.NoError(t, err)
		var at time.Time
		ended := make(chan error, 1)
		go func() {
			_, err := c.Poll(context.Background(), poll(name, 30*time.Second, res.Msg.Revision))
			at = time.Now()
			ended <- err
		}()
		time.Sleep(100 * time.Millisecond) // the poll waits by now, most likely
		began := time.Now()
		_, _, err = o.Authority().Revoke(t.Context(), name, "ada", "a test")
		require.NoError(t, err)
		_, err = c.Register(t.Context(), registration(name))
		says(t, err, connect.CodeUnauthenticated, "was revoked at")
		next = append(next, time.Since(began))
		says(t, <-ended, connect.CodeUnauthenticated, "was revoked at")
		waiting = append(waiting, at.Sub(began))
	}
	for what, all := range map[string][]time.Duration{"the waiting call has ended": waiting, "the next call was refused": next} {
		slices.Sort(all)
		t.Logf("from the revocation until %s: median %s, longest %s, of %d", what, all[len(all)/2].Round(10*time.Microsecond), all[len(all)-1].Round(10*time.Microsecond), len(all))
		require.Less(t, all[len(all)-1], 20*time.Second, "it ended with its certificate, and not by its time")
	}
}

// Open tokens can be revoked without revoking the node.
func TestTokensWithdrawn(t *testing.T) {
	o := serve(t, nil)
	_, id := enrolled(t, o, "client")
	open := o.token(t, "client")
	s := states(t, o)["client"]
	require.Equal(t, linktrialv1.NodeIdentity_STATE_ENROLLED, s.State)
	require.Len(t, s.OpenTokens, 1, "the one that was used is not open")
	require.NotEmpty(t, s.OpenTokens[0].CreatedBy)
	require.True(t, s.OpenTokens[0].Expires.AsTime().After(s.OpenTokens[0].Created.AsTime()))
	n, err := o.Authority().WithdrawTokens(t.Context(), "client", "ada")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	_, err = identity.Enrol(t.Context(), newNode(t).enrolment(o.URL(), open))
	says(t, err, 0, "it was withdrawn at")
	_, err = caller(t, o, id).Register(t.Context(), registration("client"))
	require.NoError(t, err)
	require.Empty(t, states(t, o)["client"].OpenTokens)
	_, err = o.Authority().WithdrawTokens(t.Context(), "client", "ada")
	says(t, err, 0, "no such node with an open token")
}

// A certificate is renewed while the node works, and is valid after the first has
// expired.
func TestRenewal(t *testing.T) {
	o := serve(t, nil)
	n, id := enrolled(t, o, "client")
	s, err := session.New(session.Config{URL: o.URL(), Name: "client", Version: "v-agent", Identity: id, Incarnation: "one"})
	require.NoError(t, err)
	defer s.Close()
	old := caller(t, o, mustLoad(t, n))
	_, err = old.Register(t.Context(), registration("client"))
	require.NoError(t, err)
	first := id.Expires()
	o.clock.move(19 * day)
	require.True(t, o.clock.now().Before(id.Due()), "two thirds of thirty days are not over")
	o.clock.move(2 * day)
	require.False(t, o.clock.now().Before(id.Due()))
	require.NoError(t, s.Renew(t.Context()))
	require.True(t, id.Expires().After(first.Add(20*day)), "%s", id.Expires())
	require.Equal(t, id.Expires(), mustLoad(t, n).Expires(), "what is shown is what is kept")
	_, err = old.Register(t.Context(), registration("client"))
	require.NoError(t, err, "the one before is good until it ends")
	o.clock.move(10 * day)
	_, err = old.Register(t.Context(), registration("client"))
	says(t, err, connect.CodeUnauthenticated, "expired at")
	_, err = caller(t, o, id).Register(t.Context(), registration("client"))
	require.NoError(t, err)
	certs, _, err := o.Authority().Revoke(t.Context(), "client", "ada", "")
	require.NoError(t, err)
	require.Equal(t, 1, certs, "of the two, one has ended by itself")
	before := id.Expires()
	says(t, s.Renew(t.Context()), connect.CodeUnauthenticated, "was revoked at")
	require.Equal(t, before, id.Expires(), "nothing half-changed")
	require.Equal(t, before, mustLoad(t, n).Expires())
}

func mustLoad(t testing.TB, n *node) *identity.Identity {
	t.Helper()
	id, err := identity.Load(n.dir, n.clock.now)
	require.NoError(t, err)
	return id
}

// The orchestrator renews its own certificate without a restart.
func TestOrchestratorRenewsItsCertificate(t *testing.T) {
	o := serve(t, nil)
	shown := func() time.Time {
		c, err := tls.Dial("tcp", o.Addr(), &tls.Config{ServerName: wire.OrchestratorName, InsecureSkipVerify: true})
		require.NoError(t, err)
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].NotAfter
	}
	first := shown()
	require.Equal(t, first, shown())
	o.clock.move(70 * day) // of ninety
	second := shown()
	require.True(t, second.After(first.Add(60*day)), "%s", second)
	o.restart(t)
	require.Equal(t, second, shown(), "it is kept")
}

// Tokens are issued at the start for those named nodes that need one.
func TestIssuedTokens(t *testing.T) {
	o := serve(t, nil)
	dir := filepath.Join(t.TempDir(), "tokens")
	issue := func(names ...string) { require.NoError(t, o.Authority().Issue(t.Context(), names, dir)) }
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name+".token"))
		require.NoError(t, err)
		return string(b)
	}
	issue("client", "server")
	st, err := os.Stat(filepath.Join(dir, "client.token"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	client, srv := read("client"), read("server")
	issue("client", "server")
	require.Equal(t, client, read("client"), "a token that is open stays")
	tok, err := wire.ReadToken(filepath.Join(dir, "client.token"))
	require.NoError(t, err)
	n := newNode(t)
	_, err = identity.Enrol(t.Context(), n.enrolment(o.URL(), tok))
	require.NoError(t, err)
	issue("client", "server")
	require.Equal(t, client, read("client"), "who is enrolled needs none")
	o.clock.move(25 * time.Hour)
	issue("server")
	require.NotEqual(t, srv, read("server"), "one that has ended is replaced")
	_, _, err = o.Authority().Revoke(t.Context(), "client", "a test", "")
	require.NoError(t, err)
	issue("client")
	require.NotEqual(t, client, read("client"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "server.token"), []byte("scribble"), 0o600))
	issue("server")
	_, err = wire.ParseToken(read("server"))
	require.NoError(t, err)
	says(t, o.Authority().Issue(t.Context(), []string{"a/b"}, dir), 0, "letters, digits")
	// A node to which its own folder alone is given finds one token there.
	own := t.TempDir()
	require.NoError(t, o.Authority().Issue(t.Context(), []string{"one", "two"}, filepath.Join(own, "{node}")))
	for _, name := range []string{"one", "two"} {
		files, err := os.ReadDir(filepath.Join(own, name))
		require.NoError(t, err)
		require.Len(t, files, 1)
		tok, err := wire.ReadToken(filepath.Join(own, name, name+".token"))
		require.NoError(t, err)
		require.Equal(t, name, tok.Node)
	}
}

// People's programs get the operator's own certificate, nodes the authority's.
func TestOwnCertificate(t *testing.T) {
	other := serve(t, nil) // any authority's will do
	pem := filepath.Join(other.cfg.DataDir, "authority", "server.pem")
	o := serve(t, func(c *server.Config) { c.TLSCert, c.TLSKey = pem, pem })
	c, err := tls.Dial("tcp", o.Addr(), &tls.Config{ServerName: "localhost", InsecureSkipVerify: true})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.ConnectionState().PeerCertificates[0].CheckSignatureFrom(other.Authority().Certificate()))
	_, id := enrolled(t, o, "client")
	_, err = caller(t, o, id).Register(t.Context(), registration("client"))
	require.NoError(t, err)
}
