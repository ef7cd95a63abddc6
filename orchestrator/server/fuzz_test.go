package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/radio"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// The services are fuzzed through all that an orchestrator with TLS serves, on a real
// database, one target each: anonymous, as a node, and as an admin.
func FuzzAccessService(f *testing.F)       { fuzzService(f, "AccessService") }
func FuzzAgentService(f *testing.F)        { fuzzService(f, "AgentService") }
func FuzzCatalogService(f *testing.F)      { fuzzService(f, "CatalogService") }
func FuzzControlService(f *testing.F)      { fuzzService(f, "ControlService") }
func FuzzDayService(f *testing.F)          { fuzzService(f, "DayService") }
func FuzzEnrolmentService(f *testing.F)    { fuzzService(f, "EnrolmentService") }
func FuzzEvidenceService(f *testing.F)     { fuzzService(f, "EvidenceService") }
func FuzzFleetService(f *testing.F)        { fuzzService(f, "FleetService") }
func FuzzJoinService(f *testing.F)         { fuzzService(f, "JoinService") }
func FuzzLabService(f *testing.F)          { fuzzService(f, "LabService") }
func FuzzLibraryService(f *testing.F)      { fuzzService(f, "LibraryService") }
func FuzzMeasureService(f *testing.F)      { fuzzService(f, "MeasureService") }
func FuzzNodeService(f *testing.F)         { fuzzService(f, "NodeService") }
func FuzzNotificationService(f *testing.F) { fuzzService(f, "NotificationService") }
func FuzzOperatorService(f *testing.F)     { fuzzService(f, "OperatorService") }
func FuzzReportService(f *testing.F)       { fuzzService(f, "ReportService") }
func FuzzResultService(f *testing.F)       { fuzzService(f, "ResultService") }
func FuzzTrustService(f *testing.F)        { fuzzService(f, "TrustService") }

// Every service has a target.
func TestEveryServiceIsFuzzed(t *testing.T) {
	b, err := os.ReadFile("fuzz_test.go")
	require.NoError(t, err)
	for _, m := range procedures() {
		require.Contains(t, string(b), fmt.Sprintf("fuzzService(f, %q)", m.Parent().Name()))
	}
}

// callers are who makes a call.
const (
	anonymous = iota
	byNode
	byAdmin
	callers
)

// contentTypes are those in which calls can be made, and one that is none.
var contentTypes = []string{"application/proto", "application/json", "application/connect+proto", "application/connect+json", "application/grpc", "application/grpc+json", "application/grpc-web+proto", "text/plain"}

// packings are how a body is packed, beginning with how it should be.
const (
	packed = iota
	compressed
	notCompressed // though it says so
	bare          // without the envelope of streams
	tooShort      // the envelope says that there is more
	unknownCompression
	twice
	packings
)

// fuzzed is an orchestrator whose services are fuzzed.
type fuzzed struct {
	handler http.Handler
	cert    *x509.Certificate // of the node "client"
	token   string            // of an admin
	g       *ground
	stored  int64 // records of the node's journal of the run
}

// newFuzzed starts an orchestrator with a run of which the node "client" leads.
func newFuzzed(f *testing.F) *fuzzed {
	url, sheet := storetest.URL(f), storetest.Sheet(4)
	st, err := store.OpenAs(f.Context(), url, postgres.Worker, nil)
	require.NoError(f, err)
	run := storetest.AddRun(f, st, "fuzz", sheet)
	st.Close()
	s := serveAll(f, url, f.TempDir(), func(c *server.Config) { c.TLS = true })
	x := &fuzzed{handler: s.server.Handler(), g: groundOf("fuzz", run)}

	setup, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(f, err)
	x.token = strings.TrimSpace(string(setup))
	const password = "correct horse battery"
	x.must(f, byAdmin, linktrialv1connect.AccessServiceAddUserProcedure, &linktrialv1.AddUserRequest{Name: "olga", Role: linktrialv1.Role_ROLE_ADMIN, Password: password}, &linktrialv1.AddUserResponse{})
	var in linktrialv1.LoginResponse
	x.must(f, anonymous, linktrialv1connect.AccessServiceLoginProcedure, &linktrialv1.LoginRequest{User: "olga", Password: password, TokenName: "fuzz"}, &in)
	x.token = in.Token
	x.must(f, byAdmin, linktrialv1connect.AccessServiceAddUserProcedure, &linktrialv1.AddUserRequest{Name: "vera", Role: linktrialv1.Role_ROLE_VIEWER, Password: password}, &linktrialv1.AddUserResponse{})

	token, _, err := s.server.Authority().CreateToken(f.Context(), "client", 0, "test")
	require.NoError(f, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(f, err)
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	require.NoError(f, err)
	var enrolled linktrialv1.EnrolResponse
	x.must(f, anonymous, linktrialv1connect.EnrolmentServiceEnrolProcedure, &linktrialv1.EnrolRequest{TokenSecret: token.Secret[:], Csr: csr}, &enrolled)
	x.cert, err = x509.ParseCertificate(enrolled.Certificate)
	require.NoError(f, err)
	x.must(f, byNode, linktrialv1connect.AgentServiceRegisterProcedure, &linktrialv1.RegisterRequest{Name: "client", Role: "client", Incarnation: "first", Protocol: agentprotocol.Number, Emulated: true, RadioAddress: radio.Addresses[radio.RoleClient]}, &linktrialv1.RegisterResponse{})
	return x
}

// must makes a call that has to succeed.
func (x *fuzzed) must(t testing.TB, caller int, procedure string, m, answer proto.Message) {
	t.Helper()
	res := x.call(t, caller, procedure, contentTypes[0], packed, encoded(t, m), time.Minute)
	require.Equal(t, http.StatusOK, res.Code, "%s: %s", procedure, res.Body)
	require.NoError(t, proto.Unmarshal(res.Body.Bytes(), answer))
}

// journal returns batches of a leading node's records.
func (x *fuzzed) journal() [][]byte {
	var out [][]byte
	records := storetest.Lead(x.g.texts["run_id"], storetest.Sheet(4), 2).Records
	records = records[:len(records)-1] // without its end: what comes after that counts nowhere
	for part := range slices.Chunk(records, 5) {
		m := &linktrialv1.DeliverRequest{Name: "client", RunId: x.g.texts["run_id"], Incarnation: "first"}
		for i, r := range part {
			m.Records = append(m.Records, &linktrialv1.JournalRecord{Seq: int64(i + 1), Json: r})
		}
		b, err := proto.Marshal(m)
		if err != nil {
			panic(err)
		}
		out = append(out, b)
	}
	return out
}

var recordNumber = regexp.MustCompile(`"seq":\s*-?\d+`)

// numbered continues the node's journal: records with numbers that are stored already would
// be passed over. What is not a delivery stays as it is.
func (x *fuzzed) numbered(body []byte) []byte {
	var m linktrialv1.DeliverRequest
	if proto.Unmarshal(body, &m) != nil {
		return body
	}
	for i, r := range m.Records {
		if r == nil {
			return body
		}
		r.Seq = x.stored + int64(i) + 1
		r.Json = recordNumber.ReplaceAllLiteral(r.Json, []byte(`"seq":`+strconv.FormatInt(r.Seq, 10)))
	}
	b, err := proto.Marshal(&m)
	if err != nil {
		return body
	}
	return b
}

func fuzzService(f *testing.F, service string) {
	x := newFuzzed(f)
	var all []protoreflect.MethodDescriptor
	for _, m := range procedures() {
		if string(m.Parent().Name()) == service {
			all = append(all, m)
		}
	}
	for i, m := range all {
		full := encoded(f, x.g.request(m.Input()))
		text, err := protojson.Marshal(x.g.request(m.Input()))
		require.NoError(f, err)
		kind, plain := byte(0), byte(1)
		if m.IsStreamingServer() {
			kind, plain = 2, 3
		}
		f.Add(byte(i), byte(byAdmin), kind, byte(packed), full)
		f.Add(byte(i), byte(byNode), kind, byte(compressed), full)
		f.Add(byte(i), byte(byAdmin), plain, byte(packed), text)
		f.Add(byte(i), byte(anonymous), byte(4), byte(notCompressed), full)
	}
	for i, m := range all {
		if m.Name() == "Deliver" {
			for _, b := range x.journal() {
				f.Add(byte(i), byte(byNode), byte(0), byte(packed), b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, procedure, caller, kind, packing byte, body []byte) {
		m := all[int(procedure)%len(all)]
		path := fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name())
		by := int(caller) % callers
		if by == byAdmin && (m.Name() == "Logout" || m.Name() == "RotateSigningKey") {
			by = byNode // it would end the admin's token, or collect keys
		}
		if m.Name() == "Deliver" && packing&1 == 0 {
			body = x.numbered(body)
		}
		limit := time.Minute
		if m.IsStreamingServer() || m.Name() == "Poll" {
			limit = 100 * time.Millisecond // it may wait for as long as its caller
		}
		what := contentTypes[int(kind)%len(contentTypes)]
		res := x.call(t, by, path, what, int(packing)%packings, body, limit)
		a, known := ended(what, res)
		if m.Name() == "Deliver" && res.Code == http.StatusOK && what == contentTypes[0] {
			var d linktrialv1.DeliverResponse
			require.NoError(t, proto.Unmarshal(res.Body.Bytes(), &d))
			x.stored = d.CommittedSeq
		}
		if limit < time.Minute && slices.Contains([]string{"canceled", "deadline_exceeded"}, a.Code) {
			return
		}
		if known && a.Code == "unimplemented" && strings.HasPrefix(a.Message, "unknown compression") {
			return // HTTP 501, which is what Connect's protocol asks for
		}
		require.Less(t, res.Code, 500, "%s as %s: %s", path, what, res.Body)
		if known && (strings.HasPrefix(a.Message, "protocol error: ") || strings.HasPrefix(a.Message, "corrupt response: ")) {
			return // of an envelope, which programs alone write: connect's own, as internal
		}
		if known {
			require.NotContains(t, ours, a.Code, "%s as %s: %s", path, what, a.Message)
			require.Less(t, len(a.Message), 5000)
			// That of an envelope, which programs alone write, is connect's. What stands in
			// the body, which may be sent twice, is the caller's own.
			sent := bytes.ToLower(slices.Concat(body, body))
			if leak := leaks.FindString(strings.ReplaceAll(a.Message, "incomplete envelope: unexpected EOF", "")); leak != "" && !bytes.Contains(sent, []byte(strings.ToLower(leak))) {
				t.Errorf("%s as %s: %q is of how it is made: %s", path, what, leak, a.Message)
			}
		}
	})
}

// call makes a call and returns its answer; it fails the test where the call does not end
// soon after its caller.
func (x *fuzzed) call(t testing.TB, caller int, path, contentType string, packing int, body []byte, limit time.Duration) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	encoding, enveloped := "Content-Encoding", strings.Contains(contentType, "connect+") || strings.Contains(contentType, "grpc")
	switch {
	case strings.Contains(contentType, "grpc"):
		encoding = "Grpc-Encoding"
	case enveloped:
		encoding = "Connect-Content-Encoding"
	}
	flag, named, more := byte(0), "", 0
	switch packing {
	case compressed:
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(body)
		require.NoError(t, errors.Join(err, z.Close()))
		body, flag, named = b.Bytes(), 1, "gzip"
	case notCompressed:
		flag, named = 1, "gzip"
	case unknownCompression:
		flag, named = 1, "br"
	case tooShort:
		more = 1
	}
	if enveloped && packing != bare {
		body = slices.Concat(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(body)+more)), body)
	}
	if packing == twice {
		body = slices.Concat(body, body)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", contentType)
	if strings.Contains(contentType, "grpc") {
		r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
		r.Header.Set("Te", "trailers")
	}
	if named != "" {
		r.Header.Set(encoding, named)
	}
	x.identify(r, caller)
	return x.serve(t, r)
}

// identify says who makes a request.
func (x *fuzzed) identify(r *http.Request, caller int) {
	r.RemoteAddr, r.TLS = "192.0.2.7:50000", &tls.ConnectionState{HandshakeComplete: true}
	if r.Host == "" {
		r.Host = "localhost"
	}
	switch caller {
	case byNode:
		r.TLS.PeerCertificates = []*x509.Certificate{x.cert}
	case byAdmin:
		r.Header.Set("Authorization", "Bearer "+x.token)
	}
}

func (x *fuzzed) serve(t testing.TB, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	res, done := httptest.NewRecorder(), make(chan struct{})
	late := time.AfterFunc(2*time.Minute, func() { // far beyond every limit of a call
		select {
		case <-done:
		default:
			panic(fmt.Sprintf("%s %s has not ended", r.Method, r.URL))
		}
	})
	defer late.Stop()
	defer close(done)
	func() {
		defer func() {
			// A file that cannot be finished ends its connection so.
			if p := recover(); p != nil && p != http.ErrAbortHandler { //nolint:errorlint // it is compared as net/http does
				panic(p)
			}
		}()
		x.handler.ServeHTTP(res, r)
	}()
	return res
}

// ended returns how a call ended, where its answer says so.
func ended(contentType string, res *httptest.ResponseRecorder) (answer, bool) {
	var a answer
	switch {
	case strings.HasPrefix(contentType, "application/grpc-web"), contentType == "text/plain":
		return a, false
	case strings.HasPrefix(contentType, "application/grpc"):
		h := res.Result()
		n, err := strconv.Atoi(h.Trailer.Get("Grpc-Status"))
		if err != nil {
			return a, false
		}
		return answer{grpcCodes[n%len(grpcCodes)], h.Trailer.Get("Grpc-Message")}, true
	case res.Code != http.StatusOK:
		return a, json.Unmarshal(res.Body.Bytes(), &a) == nil
	case strings.Contains(contentType, "connect+"):
		a, err := endOfStream(res.Body.Bytes())
		return a, err == nil
	}
	return a, true
}

// grpcCodes are the codes of errors by their numbers.
var grpcCodes = []string{"", "canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists", "permission_denied", "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented", "internal", "unavailable", "data_loss", "unauthenticated"}

// FuzzPages fuzzes everything else that is served, downloads and metrics included, with
// requests as they arrive.
func FuzzPages(f *testing.F) {
	x := newFuzzed(f)
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: 10.0.0.1:7700\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: [::1]\r\n\r\n",
		"GET /download?campaign=fuzz&format=csv&stem=a HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n",
		"GET /download?run=fuzz-1&format=json&treatment=one HTTP/1.1\r\nHost: localhost\r\nCookie: __Host-linktrial=AAAA\r\n\r\n",
		"HEAD /assets/../index.html HTTP/1.1\r\nHost: evil.example\r\nOrigin: https://evil.example\r\nRange: bytes=0-9\r\n\r\n",
		"POST /linktrial.v1.AccessService/WhoAmI HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 2\r\n\r\n{}",
		"OPTIONS * HTTP/1.1\r\nHost: \r\nAuthorization: Bearer ltp_x\r\n\r\n",
	} {
		for caller := range callers {
			f.Add(byte(caller), []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, caller byte, request []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		x.identify(r, int(caller)%callers)
		res := x.serve(t, r.WithContext(ctx))
		if ctx.Err() == nil {
			require.Less(t, res.Code, 500, "%q: %s", request, res.Body)
		}
	})
}
