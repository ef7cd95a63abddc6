package client

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/orchestrator/security/access"
)

// seen notes the token of a call.
type seen struct{ header string }

func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s.header = r.Header.Get("Authorization")
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// The local token goes to an orchestrator of this machine over TLS, where there is no other
// credential.
func TestLocalToken(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv(TokenEnv, "")
	packaged, own := t.TempDir(), t.TempDir()
	defer func(before Trust) { Trusted = before }(Trusted)
	Trusted = Trust{Data: own, Packaged: packaged}
	keep := func(dir, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, access.LocalTokenFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const path = "/linktrial.v1.OperatorService/ListRuns"
	expect := func(base, path, want string) {
		t.Helper()
		s := &seen{}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := withCredentials(s).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if s.header != want {
			t.Errorf("%s%s: %q, expected %q", base, path, s.header, want)
		}
	}
	expect("https://127.0.0.1:7700", path, "")
	keep(packaged, "ltl_packaged\n")
	expect("https://127.0.0.1:7700", path, "Bearer ltl_packaged")
	keep(own, "ltl_own\n")
	expect("https://localhost:7700", path, "Bearer ltl_own")
	expect("https://[::1]:7700", path, "Bearer ltl_own")
	expect("http://127.0.0.1:7700", path, "")
	expect("https://192.0.2.1:7700", path, "")
	expect("https://orchestrator.example:7700", path, "")
	expect("https://127.0.0.1:7700", "/linktrial.v1.AgentService/Poll", "")
	keep(own, "two words\n")
	expect("https://127.0.0.1:7700", path, "Bearer ltl_packaged")
	keep(own, strings.Repeat("x", maxToken+1))
	expect("https://127.0.0.1:7700", path, "Bearer ltl_packaged")
	if err := KeepCredential("https://127.0.0.1:7700", Credential{User: "anna", Token: "ltp_login"}); err != nil {
		t.Fatal(err)
	}
	expect("https://127.0.0.1:7700", path, "Bearer ltp_login")
	t.Setenv(TokenEnv, "ltp_environment")
	expect("https://127.0.0.1:7700", path, "Bearer ltp_environment")
}
