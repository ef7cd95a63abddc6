package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/identity"
)

// keep is a node's cache of one session.
type keep struct{ session *tls.ClientSessionState }

func (k *keep) Get(string) (*tls.ClientSessionState, bool) { return k.session, k.session != nil }
func (k *keep) Put(_ string, s *tls.ClientSessionState)    { k.session = s }

// connected is one connection as a node makes it: whether it resumed a session, whom the
// orchestrator takes the node for, and how many bytes passed.
func connected(t *testing.T, server *tls.Config, cache *keep, own *tls.Certificate) (resumed bool, node *x509.Certificate, bytes int) {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	counted := &counting{Conn: here}
	client := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: identity.OrchestratorName, NextProtos: []string{"h2"}, InsecureSkipVerify: true, //nolint:gosec // what is sent is no secret
		ClientSessionCache: cache, CurvePreferences: []tls.CurveID{tls.X25519}}
	client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	ended := make(chan error, 1)
	s := tls.Server(there, server)
	go func() {
		defer there.Close()
		_, err := s.Write([]byte{1})
		ended <- err
	}()
	c := tls.Client(counted, client)
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err := io.ReadFull(c, make([]byte, 1)) // the ticket comes before it
	require.NoError(t, err)
	require.NoError(t, <-ended)
	if shown := s.ConnectionState().PeerCertificates; len(shown) > 0 {
		node = shown[0]
	}
	return c.ConnectionState().DidResume, node, counted.bytes
}

type counting struct {
	net.Conn
	bytes int
}

func (c *counting) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.bytes += n
	return n, err
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.bytes += n
	return n, err
}

// A node resumes its session: the orchestrator knows it by the certificate that it
// showed first, and much less passes. After a start of the orchestrator there is
// nothing to resume.
func TestNodesResumeSessions(t *testing.T) {
	now := time.Now()
	p, err := openKeys(t.TempDir(), now)
	require.NoError(t, err)
	a := &Authority{cfg: Config{Mode: ModeTLS}, keys: p, now: time.Now, dir: t.TempDir(), log: slog.New(slog.DiscardHandler), names: []string{"localhost"}}
	require.NoError(t, a.openServer())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	require.NoError(t, err)
	leaf, err := p.nodeCertificate("client", request, now)
	require.NoError(t, err)
	own := &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
	server := a.ServerTLS()
	cache := &keep{}
	resumed, node, full := connected(t, server, cache, own)
	require.False(t, resumed)
	require.Equal(t, own.Leaf.Raw, node.Raw)
	for range 3 {
		var bytes int
		resumed, node, bytes = connected(t, server, cache, own)
		require.True(t, resumed)
		require.Equal(t, own.Leaf.Raw, node.Raw)
		require.Less(t, bytes, 1000, "a full handshake has %d bytes", full)
	}
	resumed, node, _ = connected(t, a.ServerTLS(), cache, own)
	require.False(t, resumed, "of an orchestrator that was started again")
	require.Equal(t, own.Leaf.Raw, node.Raw)
}

// Sessions take a bounded memory: the oldest is forgotten.
func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	first, err := s.add(&tls.SessionState{})
	require.NoError(t, err)
	for range maxSessions {
		_, err := s.add(&tls.SessionState{})
		require.NoError(t, err)
	}
	require.Len(t, s.byID, maxSessions)
	require.Len(t, s.order, maxSessions)
	state, err := s.get(first)
	require.NoError(t, err)
	require.Nil(t, state)
}
