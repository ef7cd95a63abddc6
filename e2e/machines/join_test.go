package machines

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"linktrial/agents/identity"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	wire "linktrial/internal/identity"
	"linktrial/internal/joincode"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
)

// admins has, by orchestrator, an admin's token of a login.
var admins sync.Map

// bearer makes calls with an admin's token.
type bearer struct {
	token string
	under http.RoundTripper
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.under.RoundTrip(r)
}

// asAdmin is a client of somebody who is logged in as an admin.
func asAdmin(t testing.TB, o *orchestrator) *http.Client {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(o.Authority().Certificate())
	b := &bearer{under: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Time: o.clock.now}, DisableKeepAlives: true}}
	client := &http.Client{Transport: b}
	if token, known := admins.Load(o); known {
		b.token = token.(string)
		return client
	}
	setup, err := os.ReadFile(filepath.Join(o.cfg.DataDir, access.SetupFile))
	require.NoError(t, err)
	b.token = strings.TrimSpace(string(setup))
	people := linktrialv1connect.NewAccessServiceClient(client, o.URL())
	const password = "correct horse battery"
	_, err = people.AddUser(t.Context(), connect.NewRequest(&linktrialv1.AddUserRequest{Name: "olga", Role: linktrialv1.Role_ROLE_ADMIN, Password: password}))
	require.NoError(t, err)
	b.token = ""
	in, err := people.Login(t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: "olga", Password: password, TokenName: "test"}))
	require.NoError(t, err)
	b.token = in.Msg.Token
	admins.Store(o, b.token)
	return client
}

// joins calls the service as an admin.
func joins(t testing.TB, o *orchestrator) linktrialv1connect.JoinServiceClient {
	t.Helper()
	return linktrialv1connect.NewJoinServiceClient(asAdmin(t, o), o.URL())
}

func openCode(t testing.TB, o *orchestrator) joincode.Code {
	t.Helper()
	res, err := joins(t, o).OpenJoining(t.Context(), connect.NewRequest(&linktrialv1.OpenJoiningRequest{}))
	require.NoError(t, err)
	c, err := joincode.Parse(res.Msg.Code)
	require.NoError(t, err)
	require.Equal(t, c.Spoken(), res.Msg.Spoken)
	require.Equal(t, int32(5), res.Msg.Tries)
	return c
}

func status(t testing.TB, o *orchestrator) *linktrialv1.GetJoiningResponse {
	t.Helper()
	res, err := joins(t, o).GetJoining(t.Context(), connect.NewRequest(&linktrialv1.GetJoiningRequest{}))
	require.NoError(t, err)
	return res.Msg
}

func laptop(address string, c joincode.Code, name string) identity.Join {
	return identity.Join{Address: address, Code: c, Name: name, Version: "v-laptop"}
}

// From a code to a node that polls.
func TestJoinByCode(t *testing.T) {
	o := serve(t, nil)
	require.Equal(t, linktrialv1.GetJoiningResponse_STATE_NONE, status(t, o).State)
	c := openCode(t, o)
	j, err := laptop(o.Addr(), c, "client").Exchange(t.Context())
	require.NoError(t, err)
	require.Equal(t, o.URL(), j.Orchestrator)
	require.Equal(t, "v-orchestrator", j.Version)
	require.Less(t, j.Ahead.Abs(), time.Minute)
	require.NoError(t, j.CheckTime(time.Now()))
	require.ErrorAs(t, j.CheckTime(time.Now().AddDate(-1, 0, 0)), new(*wire.TimeError))

	n := newNode(t)
	id, err := identity.Enrol(t.Context(), n.enrolment(j.Orchestrator, j.Token))
	require.NoError(t, err)
	_, err = caller(t, o, id).Register(t.Context(), registration("client"))
	require.NoError(t, err)
	s := status(t, o)
	require.Equal(t, linktrialv1.GetJoiningResponse_STATE_OPEN, s.State)
	require.Len(t, s.Joined, 1)
	require.Equal(t, "client", s.Joined[0].Name)

	_, err = laptop(o.Addr(), c, "client").Exchange(t.Context())
	require.ErrorContains(t, err, "choose another name with --name, or use --replace")
	again := laptop(o.Addr(), c, "client")
	again.Replace = true
	_, err = again.Exchange(t.Context())
	require.NoError(t, err)

	closed, err := joins(t, o).CloseJoining(t.Context(), connect.NewRequest(&linktrialv1.CloseJoiningRequest{}))
	require.NoError(t, err)
	require.True(t, closed.Msg.Closed)
	_, err = laptop(o.Addr(), c, "server").Exchange(t.Context())
	require.ErrorContains(t, err, "the code was not accepted")

	log := auditOf(t, o)
	require.Contains(t, log, `JoinService.OpenJoining done `)
	require.Contains(t, log, `JoinService.FinishJoin done name="client" replace=false`)
	require.Contains(t, log, `JoinService.FinishJoin refused name="client" replace=false a node is enrolled as client already`)
	require.Contains(t, log, `JoinService.FinishJoin refused`)
	require.Contains(t, log, "the code was not accepted")
	require.NotContains(t, log, c.String())
}

// auditOf is the audit log as text.
func auditOf(t testing.TB, o *orchestrator) string {
	t.Helper()
	res, err := linktrialv1connect.NewAccessServiceClient(asAdmin(t, o), o.URL()).ListAudit(t.Context(), connect.NewRequest(&linktrialv1.ListAuditRequest{}))
	require.NoError(t, err)
	var b strings.Builder
	for _, e := range res.Msg.Entries {
		fmt.Fprintln(&b, e.Action, e.Outcome, e.Detail, e.Message)
	}
	return b.String()
}

// Somebody ends the TLS connection and carries the messages on: neither side goes on.
func TestJoinInBetween(t *testing.T) {
	o := serve(t, nil)
	c := openCode(t, o)
	target, err := url.Parse(o.URL())
	require.NoError(t, err)
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	carried := 0
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { carried++; r.SetURL(target) },
		Transport: &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: wire.OrchestratorName}},
		ErrorLog:  slog.NewLogLogger(slog.DiscardHandler, 0), FlushInterval: -1,
	}
	between := &http.Server{Handler: proxy, TLSConfig: &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, NextProtos: []string{"h2"}}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = between.ServeTLS(l, "", "") }()
	defer between.Close()

	_, err = laptop(l.Addr().String(), c, "client").Exchange(t.Context())
	require.ErrorContains(t, err, "the code was not accepted")
	require.Equal(t, 2, carried, "both messages went through")
	require.Equal(t, int32(4), status(t, o).TriesLeft)
	require.Empty(t, status(t, o).Joined)
	_, err = laptop(o.Addr(), c, "client").Exchange(t.Context())
	require.NoError(t, err, "without anybody in between")
}

func selfSigned(t testing.TB) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "between"}, DNSNames: []string{wire.OrchestratorName}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Without TLS there is no joining, and each side says so.
func TestJoinWithoutTLS(t *testing.T) {
	o := serve(t, func(c *server.Config) { c.TLS = false })
	_, err := linktrialv1connect.NewJoinServiceClient(http.DefaultClient, o.URL()).OpenJoining(t.Context(), connect.NewRequest(&linktrialv1.OpenJoiningRequest{}))
	require.ErrorContains(t, err, "joining by a code takes TLS: ")
	_, err = laptop(o.Addr(), joincode.New(), "client").Exchange(t.Context())
	require.ErrorContains(t, err, "joining by a code takes TLS: the orchestrator at https://"+o.Addr()+" speaks plain HTTP")
}

// What answers is something else, or nothing.
func TestJoinElsewhere(t *testing.T) {
	other := &http.Server{Handler: http.NotFoundHandler(), TLSConfig: &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, NextProtos: []string{"h2"}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = other.ServeTLS(l, "", "") }()
	_, err = laptop(l.Addr().String(), joincode.New(), "client").Exchange(t.Context())
	require.ErrorContains(t, err, "has no joining by a code: it has an older version than this laptop, or is no orchestrator")
	require.NoError(t, other.Close())
	_, err = laptop(l.Addr().String(), joincode.New(), "client").Exchange(t.Context())
	require.ErrorContains(t, err, "connection refused")
	require.NotErrorIs(t, err, io.EOF)
}
