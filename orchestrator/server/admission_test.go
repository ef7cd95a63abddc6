package server_test

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/rpc/request"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/security/admission"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// bomb is n zeros, compressed about a thousand times.
func bomb(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.CopyN(w, zeros{}, n)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// A request that is small as it is sent and large when it is decompressed is refused
// by every procedure of every service at its limit, without a login and with TLS, too.
func TestEveryProcedureHasALimit(t *testing.T) {
	const most = 50 << 20 // with 50 kB as it is sent
	unary := bomb(t, most)
	// A file of results is the only large request: only who may import sends one.
	const imports = "/linktrial.v1.ResultService/ImportCampaign"
	file := bomb(t, 2*report.MaxImport)
	stream := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(unary))), unary...)
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", secure), func(t *testing.T) {
			s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.TLS = secure })
			h := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // what is sent is no secret
			defer h.CloseIdleConnections()
			for _, m := range procedures() {
				path := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
				limit := request.Limit(path)
				kind, header, body := "application/proto", "Content-Encoding", unary
				if path == imports {
					require.Less(t, limit, report.MaxImport+6<<20)
					body = file
				} else {
					require.Less(t, limit, 6<<20, path)
				}
				if m.IsStreamingServer() {
					kind, header, body = "application/connect+proto", "Connect-Content-Encoding", stream
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL()+path, bytes.NewReader(body))
				require.NoError(t, err)
				req.Header.Set("Content-Type", kind)
				req.Header.Set(header, "gzip")
				before := allocated()
				res, err := h.Do(req)
				require.NoError(t, err, path)
				text, err := io.ReadAll(res.Body)
				res.Body.Close()
				require.NoError(t, err, path)
				require.Regexp(t, `"code":"(resource_exhausted|unauthenticated)"`, string(text), path)
				if !secure {
					require.Contains(t, string(text), "resource_exhausted", path)
				}
				// A buffer that grows by doubling takes up to four times what it holds; all
				// of the request would take twice its 50 MB at least.
				require.Less(t, allocated()-before, uint64(8*limit+4<<20), path)
			}
		})
	}
}

// Before it is known who calls, 64 KiB of a request are read, whatever the procedure.
func TestUnknownCallersAreReadLittleOf(t *testing.T) {
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.TLS = true })
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // what is sent is no secret
	defer h.CloseIdleConnections()
	for path, code := range map[string]string{
		"/linktrial.v1.AccessService/Login":     "resource_exhausted",
		"/linktrial.v1.EnrolmentService/Enrol":  "resource_exhausted",
		"/linktrial.v1.AgentService/Deliver":    "unauthenticated",
		"/linktrial.v1.LibraryService/SavePlan": "unauthenticated",
	} {
		var sent counter
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL()+path, io.TeeReader(io.LimitReader(zeros{}, 100<<20), &sent))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/proto")
		res, err := h.Do(req)
		require.NoError(t, err, path)
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		require.NoError(t, err)
		require.Contains(t, string(text), code, path)
		require.Less(t, sent.n.Load(), int64(20<<20), "most of it was not read")
	}
}

// counter counts what the transport reads, also after the answer has come.
type counter struct{ n atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// stall opens a connection and sends a request of which most is missing.
func stall(t *testing.T, s *server.Server) net.Conn {
	t.Helper()
	c, err := tls.Dial("tcp", s.Addr(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // what is sent is no secret
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = fmt.Fprintf(c, "POST /linktrial.v1.AccessService/Login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	require.NoError(t, err)
	return c
}

// Requests that do not arrive take a bounded number of connections, and end.
func TestStalledRequests(t *testing.T) {
	bounds := admission.DefaultBounds()
	bounds.UnknownConnections, bounds.UnknownCalls, bounds.UnknownTime = 40, 20, 2*time.Second
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.TLS, c.Bounds = true, &bounds })
	var all []net.Conn
	for range 100 {
		all = append(all, stall(t, s.server))
	}
	require.LessOrEqual(t, s.server.Admission().Connections, 40)
	require.LessOrEqual(t, s.server.Admission().Calls, 20)
	require.Positive(t, s.server.Admission().Closed+s.server.Admission().Refused)
	answered := 0
	for _, c := range all {
		b, _ := io.ReadAll(c) // all end by themselves
		switch {
		case strings.Contains(string(b), "the request did not arrive within 2s"), strings.Contains(string(b), "too many calls are under way"):
			answered++
		}
	}
	require.Positive(t, answered)
	require.Eventually(t, func() bool {
		return s.server.Admission() == admission.Counts{Closed: s.server.Admission().Closed, Refused: s.server.Admission().Refused}
	}, 20*time.Second, 10*time.Millisecond)
}

// While as many calls of anonymous callers are under way as may be, from the same address
// and from all, somebody with a token is answered. A false token takes a place of neither.
func TestAnonymousCallersTakeNoPlaceOfOthers(t *testing.T) {
	bounds := admission.DefaultBounds()
	bounds.UnknownConnections, bounds.UnknownCalls, bounds.AllUnknownCalls = 200, 20, 20
	s := serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.TLS, c.Bounds = true, &bounds })
	for range 30 {
		stall(t, s.server)
	}
	require.Eventually(t, func() bool { return s.server.Admission().Calls == 20 && s.server.Admission().Refused >= 10 }, 20*time.Second, 10*time.Millisecond)
	setup, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	h := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // loopback
	defer h.CloseIdleConnections()
	call := func(token string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL()+"/linktrial.v1.OperatorService/ListNodes", strings.NewReader("{}"))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := h.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(b)
	}
	status, text := call("")
	require.Equal(t, http.StatusTooManyRequests, status, text)
	for range 30 {
		status, text = call("ltp_made-up")
		require.Equal(t, http.StatusUnauthorized, status, text)
	}
	// The setup token makes a user and does nothing else; that it was checked shows.
	status, text = call(strings.TrimSpace(string(setup)))
	require.Equal(t, http.StatusForbidden, status, text)
	require.Equal(t, 20, s.server.Admission().Calls)
}
