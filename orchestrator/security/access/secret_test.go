package access

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSecret(t *testing.T) {
	s := newSecret(tokenPrefix)
	require.NotEqual(t, s.text(), newSecret(tokenPrefix).text())
	require.Len(t, s.text(), 47)
	back, err := parseSecret(s.text(), setupPrefix, tokenPrefix)
	require.NoError(t, err)
	require.Equal(t, s, back)
	require.Len(t, s.hash(), 32)
	require.NotEqual(t, s.hash(), newSecret(tokenPrefix).hash())

	for name, c := range map[string]struct{ text, want string }{
		"another kind":       {"ltc_" + s.text()[4:], "does not begin with ltp_"},
		"half":               {s.text()[:20], "20 characters long, expected 47"},
		"more":               {s.text() + "A", "48 characters long, expected 47"},
		"characters":         {s.text()[:46] + "*", "characters that such a text never has"},
		"a newline inside":   {s.text()[:10] + "\n" + s.text()[11:], "characters that such a text never has"},
		"bits that are lost": {s.text()[:46] + "B", "characters that such a text never has"}, // the last of 43 has two bits of 256
		"empty":              {"", "does not begin with ltp_"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseSecret(c.text, tokenPrefix)
			require.ErrorContains(t, err, c.want)
			if len(c.text) > 10 {
				require.NotContains(t, err.Error(), c.text[5:15], "an error tells the secret")
			}
		})
	}
}

func FuzzSecret(f *testing.F) {
	f.Add(newSecret(tokenPrefix).text())
	f.Add(newSecret(setupPrefix).text())
	f.Add("ltp_")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSecret(text, tokenPrefix, setupPrefix)
		if err == nil && s.text() != text {
			t.Errorf("%q is read as %q: two texts of one secret", text, s.text())
		}
	})
}

func TestBearer(t *testing.T) {
	s := newSecret(tokenPrefix)
	for name, c := range map[string]struct {
		values []string
		none   bool
		want   string
	}{
		"none":         {nil, true, ""},
		"good":         {[]string{"Bearer " + s.text()}, false, ""},
		"lower case":   {[]string{"bearer " + s.text()}, false, ""},
		"basic":        {[]string{"Basic YW5uYTpwYXNz"}, false, "expected \"Bearer ltp_…\""},
		"no scheme":    {[]string{s.text()}, false, "expected \"Bearer ltp_…\""},
		"two":          {[]string{"Bearer " + s.text(), "Bearer " + s.text()}, false, "2 Authorization headers"},
		"empty":        {[]string{""}, false, "expected \"Bearer ltp_…\""},
		"half":         {[]string{"Bearer ltp_abc"}, false, "7 characters long"},
		"of a session": {[]string{"Bearer " + newSecret(sessionPrefix).text()}, false, "does not begin with ltp_"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok, err := bearer(http.Header{"Authorization": c.values})
			require.Equal(t, !c.none, ok)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			if ok {
				require.Equal(t, s, got)
			}
		})
	}
}

func TestCookie(t *testing.T) {
	s := newSecret(sessionPrefix)
	for name, c := range map[string]struct {
		header string
		secure bool
		found  bool
	}{
		"none":                   {"", false, false},
		"alone":                  {"linktrial=" + s.text(), false, true},
		"among others":           {"a=b; linktrial=" + s.text() + "; c=d", false, true},
		"after one that is none": {"linktrial=x; linktrial=" + s.text(), false, true},
		"plain one over TLS":     {"linktrial=" + s.text(), true, false},
		"over TLS":               {"__Host-linktrial=" + s.text(), true, true},
		"a token":                {"linktrial=" + newSecret(tokenPrefix).text(), false, false},
		"rubbish":                {"linktrial;;;=; =\x00", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := sessionSecret(http.Header{"Cookie": {c.header}}, c.secure)
			require.Equal(t, c.found, ok)
			if ok {
				require.Equal(t, s, got)
			}
		})
	}
	require.Equal(t, "linktrial=x; Path=/; Max-Age=5; HttpOnly; SameSite=Strict", sessionCookie("x", false, 5).String())
	require.Equal(t, "__Host-linktrial=x; Path=/; Max-Age=5; HttpOnly; Secure; SameSite=Strict", sessionCookie("x", true, 5).String())
}

func FuzzCookie(f *testing.F) {
	s := newSecret(sessionPrefix).text()
	f.Add("linktrial="+s, false)
	f.Add("__Host-linktrial=\""+s+"\"; x=y", true)
	f.Add("linktrial=ltc_; linktrial", false)
	f.Fuzz(func(t *testing.T, header string, secure bool) {
		got, ok := sessionSecret(http.Header{"Cookie": {header}}, secure)
		if ok && !strings.Contains(header, got.text()) {
			t.Errorf("%q holds no session %s", header, got.text())
		}
	})
}
