package access

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/security/admission"
)

func TestPassword(t *testing.T) {
	ctx := t.Context()
	h := newHasher(Cost{Passes: 1, MemoryKiB: 64, Lanes: 1})
	text, err := h.hash(ctx, "pässword one")
	require.NoError(t, err)
	require.Regexp(t, `^\$argon2id\$v=19\$m=64,t=1,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`, text)
	again, err := h.hash(ctx, "pässword one")
	require.NoError(t, err)
	require.NotEqual(t, text, again, "no salt")

	for name, c := range map[string]struct {
		password, text string
		ok             bool
	}{
		"right":           {"pässword one", text, true},
		"composed apart":  {"pässword one", text, true},
		"wrong":           {"pässword two", text, false},
		"empty":           {"", text, false},
		"longer than any": {strings.Repeat("x", 1<<20), text, false},
		"nobody's":        {"pässword one", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			ok, stale, err := h.verify(ctx, c.password, c.text)
			require.NoError(t, err)
			require.Equal(t, c.ok, ok)
			require.False(t, stale)
		})
	}
	dearer := newHasher(Cost{Passes: 2, MemoryKiB: 64, Lanes: 1})
	ok, stale, err := dearer.verify(ctx, "pässword one", text)
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, stale, "made at another cost")
	require.Equal(t, Cost{Passes: 3, MemoryKiB: 65536, Lanes: 4}, newHasher(Cost{}).cost)
}

// A PHC string of the reference implementation's own tests
// (phc-winner-argon2, src/test.c).
func TestPasswordOfOthers(t *testing.T) {
	const text = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	ok, stale, err := newHasher(Cost{Passes: 1, MemoryKiB: 64, Lanes: 1}).verify(t.Context(), "password", text)
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, stale)
}

func TestNewPassword(t *testing.T) {
	for password, want := range map[string]string{
		"ten chars!":              "",
		"zehn Äöüß …":             "",
		"correct horse battery":   "",
		"uiae45kdxq":              "",
		strings.Repeat("x7 ", 85): "",
		"password123":             "guessed soon",
		"Pa55word1234!":           "guessed soon",
		"qwertyuiop":              "guessed soon",
		"1234567890":              "guessed soon",
		"2026-11-23":              "guessed soon",
		"linktrial2026":           "guessed soon",
		"nine char":               "9 characters, expected at least 10",
		"":                        "0 characters",
		"aaaaaaaaaaaaaaa":         "guessed soon",
		"ANNA.LONGNAME":           "guessed soon",
		"anna.longname1":          "guessed soon",
		strings.Repeat("xy", 200): "400 bytes long, expected at most 256",
		"\xff\xfe0123456789":      "not UTF-8",
	} {
		err := checkPassword("anna.longname", password)
		if want == "" {
			require.NoError(t, err, password)
			continue
		}
		require.ErrorContains(t, err, want, password)
	}
}

func TestPHC(t *testing.T) {
	const salt, hash = "c29tZXNhbHQ", "RdescudvJCsgt3ub+b27Y8Xr7aJ7F0lUQXB0LZxUEsw"
	good := "$argon2id$v=19$m=65536,t=3,p=4$" + salt + "$" + hash
	_, err := parsePHC(good)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":      "not an argon2id hash",
		"plain": "not an argon2id hash",
		strings.Replace(good, "argon2id", "argon2i", 1):          "not an argon2id hash",
		strings.Replace(good, "v=19", "v=16", 1):                 `version "v=16"`,
		strings.Replace(good, "m=65536", "m=0", 1):               "cost",
		strings.Replace(good, "m=65536", "m=1048577", 1):         "cost",
		strings.Replace(good, "m=65536", "m=065536", 1):          "cost",
		strings.Replace(good, "t=3", "t=65", 1):                  "cost",
		strings.Replace(good, "p=4", "p=256", 1):                 "cost",
		strings.Replace(good, "t=3,p=4", "p=4,t=3", 1):           "cost",
		strings.Replace(good, ",p=4", "", 1):                     "cost",
		strings.Replace(good, salt, "c29t", 1):                   "the salt",
		strings.Replace(good, salt, salt+"=", 1):                 "the salt",
		strings.Replace(good, hash, "RdescudvJCsg", 1):           "the hash",
		strings.Replace(good, hash, hash[:10]+"\n"+hash[10:], 1): "the hash",
		good + "$": "not an argon2id hash",
	} {
		_, err := parsePHC(text)
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "expected $argon2id$v=19$m=KIB,t=PASSES,p=LANES$SALT$HASH")
	}
}

func FuzzPHC(f *testing.F) {
	f.Add("$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b27Y8Xr7aJ7F0lUQXB0LZxUEsw")
	f.Add("$argon2id$v=19$m=,t=,p=$$")
	f.Add("$$$$$")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePHC(text)
		if err != nil {
			return
		}
		if p.String() != text {
			t.Errorf("%q is read as %q", text, p)
		}
		if p.MemoryKiB > maxMemoryKiB || p.Passes > maxPasses || p.Lanes == 0 {
			t.Errorf("%q may take all of a machine", text)
		}
	})
}

func TestLimiter(t *testing.T) {
	now := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	l, err := newLimiter(func() time.Time { return now }, passwordAllowances)
	require.NoError(t, err)
	for i := range userBurst {
		require.Zero(t, l.take("anna", "10.0.0.1"), i)
	}
	require.Equal(t, userInterval, l.take("anna", "10.0.0.1"))
	require.Zero(t, l.take("anna", "10.9.9.9"), "who guesses elsewhere keeps nobody out")
	require.Zero(t, l.take("dirk", "10.0.0.1"), "others may try")
	now = now.Add(userInterval)
	require.Zero(t, l.take("anna", "10.0.0.1"))
	require.Equal(t, userInterval, l.take("anna", "10.0.0.1"), "a refused attempt is counted")
	l.forgive("anna", "10.0.0.1")
	require.Zero(t, l.take("anna", "10.0.0.1"))
	// Guesses from many addresses have a bound of their own, which leaves out those
	// from which the user has logged in.
	from := 0
	for l.take("anna", fmt.Sprintf("10.1.0.%d", from)) == 0 {
		from++
	}
	require.Less(t, from, everyBurst)
	require.Zero(t, l.take("anna", "10.0.0.1"))

	// One address with many names.
	tries := 0
	for l.take(strings.Repeat("x", tries+1), "2001:db8::1") == 0 {
		tries++
	}
	require.Equal(t, addressBurst, tries)
	require.Positive(t, l.take("new", "2001:db8::ffff"), "another of the same /64")
	require.Zero(t, l.take("new", "2001:db8:0:1::1"))
	require.Equal(t, "10.0.0.1", admission.Network("::ffff:10.0.0.1"))
	require.Equal(t, "@", admission.Network("@"))
	require.Equal(t, 2, seconds(1001*time.Millisecond))
}
