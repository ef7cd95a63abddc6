package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A log says whose token it was, in no form what it was.
func TestTokensInLogs(t *testing.T) {
	tok := NewToken("relay-2.a_b", sha256.Sum256([]byte("authority")))
	secret := strings.Split(tok.String(), ":")[2]
	numbers, err := json.Marshal(tok.Secret)
	require.NoError(t, err)
	var b bytes.Buffer
	for name, h := range map[string]slog.Handler{"text": slog.NewTextHandler(&b, nil), "json": slog.NewJSONHandler(&b, nil)} {
		for _, v := range []any{tok, &tok} {
			b.Reset()
			slog.New(h).Info("enrols", "token", v)
			require.Contains(t, b.String(), "linktrial-node-1:relay-2.a_b:…", name)
			require.NotContains(t, b.String(), secret, name)
			require.NotContains(t, b.String(), string(numbers), name)
		}
	}
}

func TestTokens(t *testing.T) {
	tok := NewToken("relay-2.a_b", sha256.Sum256([]byte("authority")))
	back, err := ParseToken(" " + tok.String() + "\n")
	require.NoError(t, err)
	require.Equal(t, tok, back)
	require.NotEqual(t, tok.Secret, NewToken("relay-2.a_b", tok.Fingerprint).Secret)
	parts := strings.Split(tok.String(), ":")
	for name, bad := range map[string]string{
		"empty":                 "",
		"of people":             "lta_0123456789",
		"another form":          strings.Replace(tok.String(), "node-1", "node-2", 1),
		"no name":               strings.Replace(tok.String(), ":relay-2.a_b:", "::", 1),
		"name of a path":        strings.Replace(tok.String(), ":relay-2.a_b:", ":../x:", 1),
		"short secret":          strings.Join([]string{parts[0], parts[1], parts[2][1:], parts[3]}, ":"),
		"long fingerprint":      tok.String() + "AA",
		"no base64":             strings.Join([]string{parts[0], parts[1], "!" + parts[2][1:], parts[3]}, ":"),
		"bits left over":        strings.Join([]string{parts[0], parts[1], parts[2][:42] + "B", parts[3]}, ":"),
		"a part more":           tok.String() + ":x",
		"a line break inside":   strings.Replace(tok.String(), parts[2], parts[2][:20]+"\n"+parts[2][20:], 1),
		"a part less":           strings.Join(parts[:3], ":"),
		"only the secret's bit": parts[2],
	} {
		_, err := ParseToken(bad)
		require.ErrorIs(t, err, errToken, name)
		require.NotContains(t, err.Error(), parts[2], "%s: the secret is not told", name)
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(NewToken("client", [32]byte{1}).String())
	f.Add("linktrial-node-1:a:b:c")
	f.Fuzz(func(t *testing.T, s string) {
		tok, err := ParseToken(s)
		if err != nil {
			return
		}
		back, err := ParseToken(tok.String())
		if err != nil || back != tok || tok.String() != strings.TrimSpace(s) {
			t.Fatalf("%q reads as %q", s, tok.String())
		}
	})
}

func TestTokenFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := ReadToken(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	path := filepath.Join(dir, "token")
	for text, want := range map[string]string{"": "is empty", "\n": "is empty", "nonsense": "not a node's token", strings.Repeat("x", 5000): "more than 4096 bytes"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := ReadToken(path)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, path)
		_, err = ReadTokenFrom(strings.NewReader(text), "standard input")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "standard input")
	}
	tok := NewToken("client", [32]byte{1})
	back, err := ReadTokenFrom(strings.NewReader(tok.String()+"\n"), "standard input")
	require.NoError(t, err)
	require.Equal(t, tok, back)
}

func TestNodeOf(t *testing.T) {
	for uri, want := range map[string]string{
		"linktrial://agent/client":     "client",
		"linktrial://agent/a.b-c_d":    "a.b-c_d",
		"linktrial://agent/":           "",
		"linktrial://agent/a/b":        "",
		"linktrial://operator/client":  "",
		"https://agent/client":         "",
		"linktrial://agent/client?x=y": "",
		"linktrial://u@agent/client":   "",
		"linktrial://agent:1/client":   "",
	} {
		u, err := url.Parse(uri)
		require.NoError(t, err)
		name, ok := NodeOf(&x509.Certificate{URIs: []*url.URL{u}})
		require.Equal(t, want, name, uri)
		require.Equal(t, want != "", ok, uri)
	}
	_, ok := NodeOf(&x509.Certificate{})
	require.False(t, ok)
	_, ok = NodeOf(&x509.Certificate{URIs: []*url.URL{NodeURI("a"), NodeURI("b")}})
	require.False(t, ok, "two names are none")
}

func TestFingerprints(t *testing.T) {
	f := sha256.Sum256([]byte("x"))
	plain := FormatFingerprint(f)
	var colons []string
	for i := 0; i < len(plain); i += 2 {
		colons = append(colons, strings.ToUpper(plain[i:i+2]))
	}
	for _, s := range []string{plain, strings.Join(colons, ":"), " " + plain + "\n"} {
		got, err := ParseFingerprint(s)
		require.NoError(t, err)
		require.Equal(t, f, got)
	}
	for _, s := range []string{"", plain[2:], plain + "00", "zz" + plain[2:]} {
		_, err := ParseFingerprint(s)
		require.ErrorContains(t, err, "expected 64 hex digits")
	}
}

func TestClockWords(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	require.Empty(t, ClockWords(at, at.Add(9*time.Minute)))
	require.Contains(t, ClockWords(at.AddDate(1, 0, 0), at), "it is 365 days ahead of it")
	require.Contains(t, ClockWords(at, at.Add(5*time.Hour)), "it is 5 hours behind it")
	require.Contains(t, ClockWords(at.Add(30*time.Minute), at), "30 minutes ahead of it")
}

func TestExplain(t *testing.T) {
	tls := errors.New("tls: first record does not look like a TLS handshake")
	require.ErrorContains(t, Explain("https://h:1", tls), "its URL is http://h:1")
	require.ErrorIs(t, Explain("https://h:1", tls), tls)
	for base, err := range map[string]error{"https://h:1": errors.New("EOF"), "http://h:1": tls, "http://h:2": errors.New("EOF")} {
		require.Equal(t, err, Explain(base, err), "not of this kind")
		require.False(t, IsTransport(err))
	}
	require.NoError(t, Explain("http://h:1", nil))
}

// FuzzParseFingerprint: what is taken is written and taken again, the same.
func FuzzParseFingerprint(f *testing.F) {
	one := strings.Repeat("0123456789abcdef", 4)
	f.Add(one)
	f.Add(strings.ToUpper(one[:2] + ":" + one[2:]))
	f.Add(one[1:])
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseFingerprint(s)
		if err != nil {
			return
		}
		if again, err := ParseFingerprint(FormatFingerprint(p)); err != nil || again != p {
			t.Fatalf("%x was %x: %v", again, p, err)
		}
	})
}

// FuzzNodeOf: a name that is read of a certificate is a valid one, and names this
// certificate alone.
func FuzzNodeOf(f *testing.F) {
	f.Add("linktrial://agent/n-1")
	f.Add("linktrial://agent/n-1?x=1")
	f.Add("linktrial://agent/../n-1")
	f.Add("linktrial://agent/%6e-1")
	f.Add("https://agent/n-1")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		name, ok := NodeOf(&x509.Certificate{URIs: []*url.URL{u}})
		if ok && (CheckName(name) != nil || NodeURI(name).String() != u.String()) {
			t.Fatalf("%q is the node %q", text, name)
		}
	})
}

func TestNameOfHost(t *testing.T) {
	for host, want := range map[string]string{
		"alpha": "alpha", "laptop-b.example.org": "laptop-b", "Laptop-2": "Laptop-2", "Olga's laptop": "Olga-s-laptop", "": "laptop", "...": "laptop", "-_-": "laptop", "_a_": "a", "Öl": "l",
		strings.Repeat("x", 70): strings.Repeat("x", 63), strings.Repeat("x", 62) + "-y": strings.Repeat("x", 62),
	} {
		if got := NameOfHost(host); got != want || CheckName(got) != nil {
			t.Errorf("%q: %q, expected %q", host, got, want)
		}
	}
}
