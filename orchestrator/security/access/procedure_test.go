package access_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
)

// everyProcedure calls f for each method of each service of the API.
func everyProcedure(f func(service, method string, m protoreflect.MethodDescriptor)) {
	protoregistry.GlobalFiles.RangeFilesByPackage("linktrial.v1", func(d protoreflect.FileDescriptor) bool {
		for i := range d.Services().Len() {
			s := d.Services().Get(i)
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				f(string(s.Name()), string(m.Name()), m)
			}
		}
		return true
	})
}

func TestEveryProcedureHasARule(t *testing.T) {
	known := 0
	everyProcedure(func(service, method string, _ protoreflect.MethodDescriptor) {
		if !access.RuleOf(service, method).Known {
			t.Errorf("%s.%s is not in the table of procedure.go: say there who may call it", service, method)
			return
		}
		known++
	})
	require.Equal(t, access.Procedures(), known, "the table names procedures that the API does not have")
	require.Greater(t, known, 50)
	require.Equal(t, access.Rule{People: true, Least: access.Admin, Logged: true, Changes: true}, access.RuleOf("OperatorService", "Forgotten"))
}

// Everybody's calls to everything, over HTTP: who may not is refused by the
// guard, who may comes through to what is behind it.
func TestEveryProcedureByEveryRole(t *testing.T) {
	h := build(t, nil)
	h.people()
	tokens := map[access.Role]string{}
	for role, user := range map[access.Role]string{access.Viewer: "vera", access.Director: "dirk", access.Admin: "anna"} {
		tokens[role] = h.token(h.login(user), "walk", linktrialv1.Role_ROLE_UNSPECIFIED).Text
	}
	call := func(service, method, token string, m protoreflect.MethodDescriptor) (int, string) {
		kind, body := "application/json", []byte("{}")
		if m.IsStreamingServer() {
			// The body is no message: the service refuses it, after the guard.
			kind, body = "application/connect+json", []byte("x")
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url+access.APIPrefix+service+"/"+method, bytes.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", kind)
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(b)
	}
	// What the guard itself says; the services behind it say other things.
	stopped := func(text string) string {
		if i := strings.Index(text, "{"); i < 0 || i > 5 || !strings.HasPrefix(text[i:], `{"code"`) && !strings.HasPrefix(text[i:], `{"error"`) {
			return "" // not a refusal, with the five bytes before it that one in a stream has
		}
		for _, w := range []string{"log in first", ", and this takes a"} {
			if strings.Contains(text, w) {
				return w
			}
		}
		return ""
	}
	everyProcedure(func(service, method string, m protoreflect.MethodDescriptor) {
		if service == "AccessService" && method == "Logout" {
			return // it ends what the walk walks with
		}
		need := access.RuleOf(service, method)
		_, text := call(service, method, "", m)
		want := "log in first"
		if !need.People {
			want = ""
		}
		require.Equal(t, want, stopped(text), "%s.%s by nobody: %s", service, method, text)
		for role, token := range tokens {
			_, text := call(service, method, token, m)
			want := ""
			if need.People && role < need.Least {
				want = ", and this takes a"
			}
			require.Equal(t, want, stopped(text), "%s.%s by %s: %s", service, method, role, text)
		}
	})
	status, text := call("OperatorService", "Forgotten", tokens[access.Director], methodOf(t, "OperatorService", "ListRuns"))
	require.Equal(t, http.StatusForbidden, status, text)
	status, text = call("OperatorService", "Forgotten", tokens[access.Admin], methodOf(t, "OperatorService", "ListRuns"))
	require.Equal(t, http.StatusNotFound, status, text)
}

func methodOf(t *testing.T, service, method string) protoreflect.MethodDescriptor {
	t.Helper()
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("linktrial.v1." + service + "." + method))
	require.NoError(t, err)
	return d.(protoreflect.MethodDescriptor)
}
