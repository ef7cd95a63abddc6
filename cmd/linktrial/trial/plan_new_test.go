package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/cmd/linktrial/setting"
)

// planCommand runs a command of plan in a folder of its own, with the drivers' manifests.
func planCommand(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	cmd := newPlan(&setting.Settings{Drivers: "../../../protocols" + string(os.PathListSeparator) + "../../../protocols/haul/cmd"})
	var b strings.Builder
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return b.String(), err
}

func TestPlanNew(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "first")
	out, err := planCommand(t, "new", first, "--radio", "mpu4", "--protocols", "tcp,haul")
	require.NoError(t, err)
	require.Contains(t, out, "linktrial plan check "+first+".yaml")
	text, err := os.ReadFile(first + ".yaml")
	require.NoError(t, err)
	for _, want := range []string{"\nname: first\n", "\nradio: mpu4\n", "  - {name: tcp, protocol: tcp}\n  - {name: haul, protocol: haul}\n", "\n# sweep: "} {
		require.Contains(t, string(text), want)
	}

	_, err = planCommand(t, "new", first+".yaml")
	require.ErrorContains(t, err, "first.yaml exists, and is kept")
	kept, err := os.ReadFile(first + ".yaml")
	require.NoError(t, err)
	require.Equal(t, text, kept)

	other := filepath.Join(dir, "Other One.yaml")
	_, err = planCommand(t, "new", other, "--radio", "mpu5", "--protocols", "tcp,hual")
	require.ErrorContains(t, err, "was not written:\n  name: \"Other One\", expected lower-case letters")
	require.ErrorContains(t, err, `unknown radio "mpu5" (did you mean "mpu4"?)`)
	require.ErrorContains(t, err, `unknown protocol "hual" (did you mean "haul"?)`)
	require.NoFileExists(t, other)
	_, err = planCommand(t, "new", filepath.Join(dir, "none", "first"))
	require.ErrorContains(t, err, "no such file or directory")
}
