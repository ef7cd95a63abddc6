package server_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/internal/agentprotocol"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/server"
	"linktrial/orchestrator/store/storetest"
)

// procedures returns every procedure of every service.
func procedures() []protoreflect.MethodDescriptor {
	var out []protoreflect.MethodDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage("linktrial.v1", func(d protoreflect.FileDescriptor) bool {
		for i := range d.Services().Len() {
			for j := range d.Services().Get(i).Methods().Len() {
				out = append(out, d.Services().Get(i).Methods().Get(j))
			}
		}
		return true
	})
	slices.SortFunc(out, func(a, b protoreflect.MethodDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return out
}

// answer is how a call ended; code is empty where it succeeded.
type answer struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// caller makes calls from bytes, so that they can also be what no client sends.
type rawCaller struct {
	http        *http.Client
	base, token string
}

func newRawCaller(t testing.TB, base, token string) *rawCaller {
	h := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(h.CloseIdleConnections)
	return &rawCaller{h, base, token}
}

func (c *rawCaller) call(ctx context.Context, m protoreflect.MethodDescriptor, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	kind := "application/proto"
	if m.IsStreamingServer() {
		kind, body = "application/connect+proto", append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/%s/%s", c.base, m.Parent().FullName(), m.Name()), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", kind)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	if m.IsStreamingServer() && res.StatusCode == http.StatusOK {
		return endOfStream(b)
	}
	if res.StatusCode == http.StatusOK {
		return answer{}, nil
	}
	var a answer
	if json.Unmarshal(b, &a) != nil || a.Code == "" {
		return answer{}, fmt.Errorf("status %d: %q", res.StatusCode, b)
	}
	return a, nil
}

// endOfStream reads the last message of a stream, which says how it ended.
func endOfStream(b []byte) (answer, error) {
	for len(b) >= 5 {
		n := int(binary.BigEndian.Uint32(b[1:5]))
		if len(b) < 5+n {
			break
		}
		if b[0]&2 != 0 {
			var end struct{ Error *answer }
			if err := json.Unmarshal(b[5:5+n], &end); err != nil || end.Error == nil {
				return answer{}, err
			}
			return *end.Error, nil
		}
		b = b[5+n:]
	}
	return answer{}, fmt.Errorf("a stream without an end: %q", b)
}

// leaks is what must not be in any answer: SQL, the schema, Go.
var leaks = regexp.MustCompile(`(?i)sqlstate|pgx|pgconn|\bsql\b|no rows|relation "|constraint|violates|column "|failed to connect|goroutine|runtime error|nil pointer|panic|0x0|\bEOF\b|json: |strconv|reflect\.|dial tcp|user=|database=|context (deadline|canceled)|byte sequence|linktrialv1|\*\w+\.`)

func noLeak(t *testing.T, what string, a answer) {
	t.Helper()
	require.NotRegexp(t, leaks, a.Message, what)
	require.Less(t, len(a.Message), 5000, what)
}

// ground is an orchestrator with a campaign that has ended, and requests whose
// texts name what exists there.
type ground struct {
	campaign string
	texts    map[string]string // by the field's name
}

func newGround(t *testing.T, c *clients) *ground {
	t.Helper()
	cast(t, c)
	started := c.start(t, fmt.Sprintf(testPlan, "1 KiB"))
	require.Empty(t, started.Problems)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	require.NoError(t, c.watch(ctx, started.CampaignId, func(*linktrialv1.WatchResponse) {}))
	return groundOf(started.CampaignId, started.RunIds[0])
}

func groundOf(campaign, run string) *ground {
	return &ground{campaign, map[string]string{"run_id": run, "campaign_id": campaign, "ids": run, "more_ids": run, "before": campaign, "name": "client",
		"node": "client", "nodes": "client", "user": "vera", "role": "client", "radio": "prc-117g-anw2c", "topology": "vip-lot", "kind": "topology", "format": "table",
		"protocol": "alpha", "protocols": "alpha", "plan": "demo", "file": "test.yaml", "incarnation": "first", "by": "vera", "reason": "a reason"}}
}

// request fills a request with what exists: every text, in every message of it once.
func (g *ground) request(d protoreflect.MessageDescriptor) *dynamicpb.Message {
	m := dynamicpb.NewMessage(d)
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		switch {
		case f.IsMap():
			m.Mutable(f).Map().Set(protoreflect.ValueOfString("key").MapKey(), protoreflect.ValueOfString("value"))
		case f.Kind() == protoreflect.StringKind && f.IsList():
			m.Mutable(f).List().Append(protoreflect.ValueOfString(g.text(f)))
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(g.text(f)))
		case f.Kind() == protoreflect.Int32Kind && f.Name() == "protocol":
			m.Set(f, protoreflect.ValueOfInt32(agentprotocol.Number))
		case f.Kind() == protoreflect.BytesKind && !f.IsList() && f.Name() == "text":
			m.Set(f, protoreflect.ValueOfBytes(fmt.Appendf(nil, testPlan, "1 KiB")))
		case f.Kind() == protoreflect.MessageKind && f.IsList():
			m.Mutable(f).List().Append(protoreflect.ValueOfMessage(g.request(f.Message())))
		case f.Kind() == protoreflect.MessageKind && f.ContainingOneof() == nil:
			m.Set(f, protoreflect.ValueOfMessage(g.request(f.Message())))
		}
	}
	return m
}

func (g *ground) text(f protoreflect.FieldDescriptor) string {
	if s, ok := g.texts[string(f.Name())]; ok {
		return s
	}
	return "none-such"
}

// variant is a request in which one value is replaced.
type variant struct {
	field string
	m     *dynamicpb.Message
}

// variants returns a request for every field, nested ones too, for which set has a
// value; that field has it.
func (g *ground) variants(root protoreflect.MessageDescriptor, set func(protoreflect.FieldDescriptor) (protoreflect.Value, bool)) []variant {
	var out []variant
	var walk func(protoreflect.MessageDescriptor, []protoreflect.FieldDescriptor)
	walk = func(d protoreflect.MessageDescriptor, path []protoreflect.FieldDescriptor) {
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			to := append(path[:len(path):len(path)], f)
			if f.Kind() == protoreflect.MessageKind && !f.IsMap() {
				walk(f.Message(), to)
				continue
			}
			of := f
			if f.IsMap() {
				of = f.MapValue()
			}
			if v, ok := set(of); ok {
				out = append(out, g.variant(root, to, v))
			}
		}
	}
	walk(root, nil)
	return out
}

func (g *ground) variant(root protoreflect.MessageDescriptor, path []protoreflect.FieldDescriptor, v protoreflect.Value) variant {
	whole := g.request(root)
	m, name := protoreflect.Message(whole), ""
	last := len(path) - 1
	for _, f := range path[:last] {
		name += string(f.Name()) + "."
		if f.IsList() {
			m = m.Mutable(f).List().Get(0).Message()
		} else {
			m = m.Mutable(f).Message()
		}
	}
	switch f := path[last]; {
	case f.IsMap():
		m.Mutable(f).Map().Set(protoreflect.ValueOfString("key").MapKey(), v)
		m.Mutable(f).Map().Set(v.MapKey(), v)
	case f.IsList():
		m.Mutable(f).List().Append(v)
	default:
		m.Set(f, v)
	}
	return variant{name + string(path[last].Name()), whole}
}

// setUp returns the token of an admin of an orchestrator on which people log in;
// there is also a viewer named vera.
func setUp(t *testing.T, s *services) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.data, access.SetupFile))
	require.NoError(t, err)
	people := linktrialv1connect.NewAccessServiceClient(s.http, s.base, connect.WithGRPC())
	add := func(token, name string, role linktrialv1.Role) {
		r := connect.NewRequest(&linktrialv1.AddUserRequest{Name: name, Role: role, Password: "correct horse battery"})
		r.Header().Set("Authorization", "Bearer "+token)
		_, err := people.AddUser(t.Context(), r)
		require.NoError(t, err)
	}
	add(strings.TrimSpace(string(b)), "anna", linktrialv1.Role_ROLE_ADMIN)
	in, err := people.Login(t.Context(), connect.NewRequest(&linktrialv1.LoginRequest{User: "anna", Password: "correct horse battery", TokenName: "test"}))
	require.NoError(t, err)
	add(in.Msg.Token, "vera", linktrialv1.Role_ROLE_VIEWER)
	return in.Msg.Token
}

// passes are fields whose control characters are removed, because programs write
// them, and those that are only hashed.
var passes = regexp.MustCompile(`^(host|kernel|password|secret|current|drivers\.(version|implementation|unsupported|choices)|checks\.(found|expected|meaning|remedy)|faults\.text|telemetry\.(error|source|values\.(name|unit))|interfaces\.interfaces\.(name|driver|bus|configured_by|points\.text)|radios\.(text|fixed))$`)

// ours are codes that say that the orchestrator failed, and not the caller.
var ours = []string{"internal", "unknown", "data_loss", "unavailable", "deadline_exceeded"}

// No value of any field of any request makes a procedure fail as if the fault were
// the orchestrator's, or shows how the orchestrator keeps its data.
func TestHostileRequests(t *testing.T) {
	for _, login := range []bool{false, true} {
		t.Run(fmt.Sprintf("login=%t", login), func(t *testing.T) {
			s := serveAll(t, storetest.URL(t), t.TempDir(), nil)
			g := newGround(t, s.clients)
			token := ""
			if login {
				s = serveAll(t, storetest.URL(t), t.TempDir(), func(c *server.Config) { c.Login = true })
				token = setUp(t, s)
			}
			c := newRawCaller(t, s.base, token)
			calls := 0
			ask := func(m protoreflect.MethodDescriptor, what string, body []byte) answer {
				a, err := c.call(t.Context(), m, body)
				what = fmt.Sprintf("%s.%s, %s: %s %.300s", m.Parent().Name(), m.Name(), what, a.Code, a.Message)
				require.NoError(t, err, what)
				require.NotContains(t, ours, a.Code, what)
				noLeak(t, what, a)
				calls++
				return a
			}
			for _, m := range procedures() {
				if login && m.Parent().Name() != "AccessService" && m.Parent().Name() != "NodeService" || m.Name() == "Logout" || m.Name() == "WatchNotifications" { // the stream ends with its caller
					continue
				}
				for name, bad := range hostile() {
					for _, v := range g.variants(m.Input(), ofKind(protoreflect.StringKind, protoreflect.ValueOfString(placeholder))) {
						a := ask(m, v.field+" "+name, replaced(t, v.m, bad))
						if name == "NUL" && !passes.MatchString(v.field) {
							require.Equal(t, "invalid_argument", a.Code, "%s.%s, %s: %s", m.Parent().Name(), m.Name(), v.field, a.Message)
							require.Contains(t, a.Message, v.field[strings.LastIndex(v.field, ".")+1:], "the field is named")
							require.Contains(t, a.Message, "U+0000")
						}
					}
				}
				for _, v := range hostileNumbers(g, m.Input()) {
					b, err := proto.Marshal(v.m)
					require.NoError(t, err)
					ask(m, v.field, b)
				}
				ask(m, "not a message", []byte("\xff\xff\xff\xff\xff\xff"))
			}
			t.Logf("%d calls", calls)
			require.Greater(t, calls, 200)
		})
	}
}

// placeholder stands for a value that no client could put into a message, since it
// may not be valid UTF-8.
const placeholder = "PLACEHOLDER"

func hostile() map[string]string {
	return map[string]string{"NUL": "run\x00name", "invalid UTF-8": "run\xff\xfename", "half a rune": "run\xe2\x82", "escape": "\x1b]0;title\x07\x1b[31mred", "lines": "one\ntwo\r\nthree",
		"a mebibyte": strings.Repeat("x", 1<<20), "quotes": `'; DROP TABLE runs; --"`, "pattern": "%_\\", "path": "../../../etc/passwd", "empty": "", "separator": "a\u2028b\u202ec"}
}

func ofKind(kind protoreflect.Kind, v protoreflect.Value) func(protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
	return func(f protoreflect.FieldDescriptor) (protoreflect.Value, bool) { return v, f.Kind() == kind }
}

// replaced encodes a message with bad instead of the placeholder: as encoded, a text
// is its length and its bytes, so the message around it is encoded anew.
func replaced(t *testing.T, m *dynamicpb.Message, bad string) []byte {
	t.Helper()
	if len(bad) == len(placeholder) || strings.ToValidUTF8(bad, "") == bad {
		b, err := proto.Marshal(m)
		require.NoError(t, err)
		if strings.ToValidUTF8(bad, "") != bad {
			return bytes.ReplaceAll(b, []byte(placeholder), []byte(bad))
		}
		swap(m, bad)
		b, err = proto.Marshal(m)
		require.NoError(t, err)
		return b
	}
	return replaced(t, m, (bad + strings.Repeat("\xff", len(placeholder)))[:len(placeholder)])
}

// swap replaces the placeholder in a message.
func swap(m protoreflect.Message, with string) {
	v := protoreflect.ValueOfString(with)
	m.Range(func(f protoreflect.FieldDescriptor, x protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if x.Map().Has(protoreflect.ValueOfString(placeholder).MapKey()) {
				x.Map().Clear(protoreflect.ValueOfString(placeholder).MapKey())
				x.Map().Set(protoreflect.ValueOfString("key").MapKey(), v)
				x.Map().Set(v.MapKey(), v)
			}
		case f.IsList():
			for i := range x.List().Len() {
				if f.Kind() == protoreflect.MessageKind {
					swap(x.List().Get(i).Message(), with)
				} else if f.Kind() == protoreflect.StringKind && x.List().Get(i).String() == placeholder {
					x.List().Set(i, v)
				}
			}
		case f.Kind() == protoreflect.MessageKind:
			swap(x.Message(), with)
		case f.Kind() == protoreflect.StringKind && x.String() == placeholder:
			m.Set(f, v)
		}
		return true
	})
}

// hostileNumbers are requests with numbers and bytes at and beyond every bound.
func hostileNumbers(g *ground, d protoreflect.MessageDescriptor) []variant {
	var out []variant
	for _, n := range []int64{math.MinInt64, math.MinInt32, -1, math.MaxInt32, math.MaxInt64} {
		out = append(out, g.variants(d, func(f protoreflect.FieldDescriptor) (protoreflect.Value, bool) {
			switch f.Kind() {
			case protoreflect.Int32Kind:
				return protoreflect.ValueOfInt32(int32(max(math.MinInt32, min(math.MaxInt32, n)))), f.Name() != "wait_ms"
			case protoreflect.Int64Kind:
				return protoreflect.ValueOfInt64(n), true
			case protoreflect.EnumKind:
				return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(max(math.MinInt32, min(math.MaxInt32, n))))), true
			}
			return protoreflect.Value{}, false
		})...)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1} {
		out = append(out, g.variants(d, ofKind(protoreflect.DoubleKind, protoreflect.ValueOfFloat64(x)))...)
	}
	for _, b := range []string{"", "\x00", "\xff\xfe", "{", "null", `{"seq":1}`, "[[[[", "name: \x00"} {
		out = append(out, g.variants(d, ofKind(protoreflect.BytesKind, protoreflect.ValueOfBytes([]byte(b))))...)
	}
	return out
}

// While the database is down, nothing is said not to exist, and nothing is said to
// be the caller's fault that is not. Once it is back, calls succeed again.
func TestDatabaseDown(t *testing.T) {
	dir, err := os.MkdirTemp("", "linktrial-down-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755)) // the user postgres must reach it
	pg, err := postgres.Start(t.Context(), postgres.Config{DataDir: dir})
	require.NoError(t, err)
	stopped := false
	end := func() {
		if !stopped {
			stopped = true
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			require.NoError(t, pg.Stop(ctx))
		}
	}
	t.Cleanup(func() { end() })
	s := serveAll(t, pg.URL(), t.TempDir(), nil)
	g := newGround(t, s.clients)
	c := newRawCaller(t, s.base, "")

	before := map[string]string{}
	var all []protoreflect.MethodDescriptor
	for _, m := range procedures() {
		if skipWithoutDatabase[string(m.Name())] {
			continue
		}
		all = append(all, m)
	}
	// Only what changes nothing is asked while the database is up.
	for _, m := range all {
		if reads(m) {
			a, err := c.call(t.Context(), m, encoded(t, g.request(m.Input())))
			require.NoError(t, err, m.FullName())
			before[string(m.FullName())] = a.Code
		}
	}
	end()
	down := 0
	for _, m := range all {
		a, err := c.call(t.Context(), m, encoded(t, g.request(m.Input())))
		what := fmt.Sprintf("%s: %s %s", m.FullName(), a.Code, a.Message)
		require.NoError(t, err, what)
		noLeak(t, what, a)
		require.NotContains(t, []string{"internal", "unknown", "deadline_exceeded"}, a.Code, what)
		// What does not exist at all may be said to be so: memory knows.
		if before[string(m.FullName())] != "not_found" && !strings.Contains(a.Message, "none-such") {
			require.NotEqual(t, "not_found", a.Code, what)
		}
		if a.Code == "unavailable" {
			require.Contains(t, a.Message, "the database does not answer", what)
			down++
		}
	}
	require.Greater(t, down, 30, "the database was down")

	pg, err = postgres.Start(t.Context(), postgres.Config{DataDir: dir})
	require.NoError(t, err)
	stopped = false
	require.Eventually(t, func() bool {
		_, err := s.operator.GetRun(t.Context(), connect.NewRequest(&linktrialv1.GetRunRequest{RunId: g.texts["run_id"]}))
		return err == nil
	}, 30*time.Second, 50*time.Millisecond, "the orchestrator answers again")
}

// skipWithoutDatabase are procedures whose answer says nothing of the database, and a stream that
// has no end while it works.
var skipWithoutDatabase = map[string]bool{"WatchNotifications": true, "RotateSigningKey": true, "DeleteTopology": true}

func reads(m protoreflect.MethodDescriptor) bool {
	for _, prefix := range []string{"Get", "List", "Watch", "Links", "Series", "Sweep", "Summarize", "Results", "WhoAmI", "Clock", "Check", "Explain"} {
		if strings.HasPrefix(string(m.Name()), prefix) {
			return true
		}
	}
	return false
}

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	require.NoError(t, err)
	return b
}
