package trial

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/setting"
)

// A plan of several radios names none: nobody knows which is attached first.
func TestPreflightOfAPlan(t *testing.T) {
	drivers := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(drivers, "tcp"), os.DirFS("../../../protocols/tcp")))
	s := &setting.Settings{Drivers: drivers, Data: t.TempDir()}
	for name, tt := range map[string]struct{ radios, flag, want string }{
		"one":                 {"prc-117g-anw2c", "", "prc-117g-anw2c"},
		"several":             {"[prc-117g-anw2c, reference-link]", "", ""},
		"several, and a flag": {"[prc-117g-anw2c, reference-link]", "reference-link", "reference-link"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "plan.yaml")
			require.NoError(t, os.WriteFile(file, []byte(`name: looked-at
radio: `+tt.radios+`
topology: [point-to-point, vip-lot]
size: 16 KiB
treatments:
  - {name: tcp-cubic, label: TCP, protocol: tcp, options: {congestion: cubic}}
iterations: 1
seed: 1
`), 0o644))
			req := &linktrialv1.StartPreflightRequest{Radio: tt.flag}
			require.NoError(t, ofPlan(t.Context(), s, file, req))
			require.Equal(t, tt.want, req.Radio)
			require.Equal(t, "vip-lot", req.Topology)
			require.Equal(t, []string{"tcp"}, req.Protocols)
		})
	}
}
