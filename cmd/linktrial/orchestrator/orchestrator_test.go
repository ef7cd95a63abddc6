package orchestrator

import (
	"log/slog"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"linktrial/cmd/linktrial/setting"
)

// The names of the environment and those of the flag reach the server.
func TestAllowHost(t *testing.T) {
	t.Setenv("LINKTRIAL_ALLOW_HOST", "trial, trial.example")
	f, cmd := &serveFlags{s: &setting.Settings{}}, &cobra.Command{}
	f.register(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--allow-host", "a,b", "--allow-host", "c"}))
	require.Equal(t, []string{"trial", "trial.example", "a", "b", "c"}, f.config(nil, slog.New(slog.DiscardHandler)).AllowHosts)
}

// The database's URL, which may have a password, need not be on the command line, and the
// help does not print it.
func TestDatabaseOfEnvironment(t *testing.T) {
	const url = "postgres://linktrial:pa55word@db/linktrial"
	t.Setenv("LINKTRIAL_DATABASE", url)
	f, cmd := &serveFlags{s: &setting.Settings{}}, &cobra.Command{}
	f.register(cmd)
	require.NotContains(t, cmd.UsageString(), "pa55word")
	require.Equal(t, url, f.config(nil, slog.New(slog.DiscardHandler)).DatabaseURL)
	require.NoError(t, cmd.ParseFlags([]string{"--database", "postgres://other"}))
	require.Equal(t, "postgres://other", f.config(nil, slog.New(slog.DiscardHandler)).DatabaseURL)
}
