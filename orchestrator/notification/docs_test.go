package notification_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The code of docs/notifications.md takes a signature for genuine, and no other.
func TestSignaturesAreCheckedAsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/notifications.md")
	require.NoError(t, err)
	code := func(language string) string {
		m := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(doc)
		require.NotNil(t, m, language)
		return string(m[1])
	}
	d := newDesk(t).start()
	r := receive(t, nil)
	d.save(hook("chat", r.URL), secret)
	failure, err := d.n.Test(t.Context(), "chat")
	require.NoError(t, err)
	require.Empty(t, failure)
	got := r.got()[0]
	stamp, signature := got.header.Get("Linktrial-Timestamp"), got.header.Get("Linktrial-Signature")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "body"), got.body, 0o600))
	for key, want := range map[string]string{secret: "genuine\n", "another": "not\n"} {
		for name, args := range map[string][]string{
			"python": {"python3", "-c", code("python") + fmt.Sprintf("\nheaders = {'Linktrial-Timestamp': %q, 'Linktrial-Signature': %q}\nprint('genuine' if genuine(b%q, headers, open('body', 'rb').read()) else 'not')", stamp, signature, key)},
			"sh":     {"sh", "-c", fmt.Sprintf("SECRET=%s STAMP=%s SIGNATURE=%s\n%s [ $? = 0 ] || echo not", key, stamp, signature, code("sh"))},
		} {
			cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", name, out)
			require.Equal(t, want, string(out), name)
		}
	}
}
