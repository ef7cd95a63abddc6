package access_test

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/security/access"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// sealed is a house whose database a test can also read and change by itself.
func sealed(t *testing.T) (h *house, sql func(statement string, args ...any) string) {
	t.Helper()
	url := storetest.URL(t)
	st, err := store.Open(t.Context(), url, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(st.Close)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(t.Context()) })
	h = build(t, func(c *access.Config) { c.Store, c.DataDir = st, t.TempDir() })
	h.store = st
	h.people()
	return h, func(statement string, args ...any) string {
		rows, err := conn.Query(t.Context(), statement, args...)
		require.NoError(t, err)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		var out string
		for _, text := range texts {
			out += text + "\n"
		}
		return out
	}
}

// again is the house after the orchestrator was started once more, and what it logged.
func (h *house) again(data string) (*house, *bytes.Buffer) {
	var log bytes.Buffer
	n := build(h.t, func(c *access.Config) {
		c.Store, c.DataDir, c.Now, c.Logger = h.store, data, h.clock.now, slog.New(slog.NewTextHandler(&log, nil))
	})
	n.clock, n.store = h.clock, h.store
	return n, &log
}

// codeWorks logs somebody in, and lets the code pass.
func (h *house) codeWorks(user, secret string) error {
	defer h.clock.step(step)
	_, err := h.as().tryCode(user, password, h.code(secret))
	return err
}

// The database has no secret of a second factor that anybody could make codes of.
func TestSecretsOfSecondFactorsAreSealed(t *testing.T) {
	h, sql := sealed(t)
	secret, recovery := h.enrol(h.login("vera"))
	plain, err := base32.StdEncoding.DecodeString(secret)
	require.NoError(t, err)
	row := sql("SELECT row_to_json(f)::text FROM second_factors f")
	for _, form := range []string{secret, hex.EncodeToString(plain), base64.StdEncoding.EncodeToString(plain)} {
		require.NotContains(t, row, form)
	}
	key := filepath.Join(h.data, "second-factors", "sealing-key.json")
	st, err := os.Stat(key)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	require.NoError(t, h.codeWorks("vera", secret))

	// The next start reads the key again.
	n, log := h.again(h.data)
	require.NoError(t, n.codeWorks("vera", secret))
	require.Empty(t, log.String())

	// Without the key, as after a restore of the database alone, a recovery code helps, and
	// an admin.
	n, log = h.again(t.TempDir())
	require.Contains(t, log.String(), "second factors were sealed with another key")
	require.Contains(t, log.String(), "users=[vera]")
	_, err = n.as().tryCode("vera", password, n.code(secret))
	fails(t, err, connect.CodeFailedPrecondition, "the second factor of vera cannot be read", "give a recovery code", "have an admin remove")
	_, err = n.as().tryCode("vera", password, recovery[0])
	require.NoError(t, err)
	_, err = n.login("anna").RemoveUserSecondFactor(t.Context(), connect.NewRequest(&linktrialv1.RemoveUserSecondFactorRequest{Name: "vera"}))
	require.NoError(t, err)
	fresh, _ := n.enrol(n.login("vera"))
	require.NoError(t, n.codeWorks("vera", fresh))
}

// What was sealed for one user is of no use as another's.
func TestSealedForOneUser(t *testing.T) {
	h, sql := sealed(t)
	secret, _ := h.enrol(h.login("vera"))
	h.enrol(h.login("dirk"))
	sql("UPDATE second_factors SET sealed = (SELECT sealed FROM second_factors WHERE user_name = 'vera') WHERE user_name = 'dirk' RETURNING user_name")
	_, err := h.as().tryCode("dirk", password, h.code(secret))
	fails(t, err, connect.CodeFailedPrecondition, "the second factor of dirk cannot be read")
	require.NoError(t, h.codeWorks("vera", secret))
}

// A key that others could read, or that is damaged, ends the start, and stays as it is.
func TestKeyOfSecondFactorsRefused(t *testing.T) {
	h, _ := sealed(t)
	path := filepath.Join(h.data, "second-factors", "sealing-key.json")
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, x := range map[string]struct {
		text []byte
		mode os.FileMode
		want string
	}{
		"open to others": {good, 0o640, "is open to others (mode 0640, expected 0600)"},
		"cut off":        {good[:len(good)/2], 0o600, "unexpected end of JSON input"},
		"short":          {[]byte(`{"format":1,"key":"AAAA"}`), 0o600, "a key of 3 bytes"},
		"format":         {bytes.Replace(good, []byte(`"format": 1`), []byte(`"format": 2`), 1), 0o600, "format 2"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, x.text, x.mode))
			require.NoError(t, os.Chmod(path, x.mode))
			_, err := access.New(t.Context(), access.Config{Store: h.store, Required: true, DataDir: h.data, Cost: cheap, Now: h.clock.now})
			require.ErrorContains(t, err, "key of second factors: "+path)
			require.ErrorContains(t, err, x.want)
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, x.text, now)
		})
	}
}
