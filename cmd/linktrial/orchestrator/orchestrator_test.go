package orchestrator

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"linktrial/cmd/linktrial/setting"
	"linktrial/lab/faults"
)

// The names of the environment and those of the flag reach the server.
func TestAllowHost(t *testing.T) {
	t.Setenv("LINKTRIAL_ALLOW_HOST", "trial, trial.example")
	f, cmd := &serveFlags{s: &setting.Settings{}}, &cobra.Command{}
	f.register(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--allow-host", "a,b", "--allow-host", "c"}))
	require.Equal(t, []string{"trial", "trial.example", "a", "b", "c"}, f.config(nil, slog.New(slog.DiscardHandler)).AllowHosts)
}

func TestRadioInterface(t *testing.T) {
	f, cmd := &serveFlags{s: &setting.Settings{}}, &cobra.Command{}
	f.register(cmd)
	require.NoError(t, cmd.ParseFlags([]string{"--radio-interface", "wlan0,wlan1"}))
	unused := f.config(nil, slog.New(slog.DiscardHandler)).NotAnnouncedOn
	for name, want := range map[string]bool{"wlan0": true, "wlan1": true, "eth0": false} {
		require.Equal(t, want, unused(net.Interface{Name: name}), name)
	}
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

// What a fault campaign that was killed has left in the settings of the database is taken
// out before that is started, but for the orchestrator of a campaign that is under way.
func TestSettingsOfAKilledFaultCampaign(t *testing.T) {
	f, cmd := &serveFlags{s: &setting.Settings{}}, &cobra.Command{}
	f.register(cmd)
	log := slog.New(slog.DiscardHandler)
	dir := t.TempDir()
	path := filepath.Join(dir, "postgresql.auto.conf")
	require.NoError(t, os.WriteFile(path, []byte("work_mem = '8MB'\ndefault_transaction_read_only = on # injected by a fault campaign\n"), 0o600))
	require.NoError(t, f.config(nil, log).BeforeDatabase(dir))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "work_mem = '8MB'\n", string(b))
	require.NoError(t, f.config(nil, log).BeforeDatabase(t.TempDir()), "there is no database yet")

	t.Setenv(faults.CampaignVariable, "1")
	require.Nil(t, f.config(nil, log).BeforeDatabase)
}
