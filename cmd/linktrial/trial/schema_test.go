package trial

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"linktrial/cmd/linktrial/setting"
)

func TestSchema(t *testing.T) {
	s := &setting.Settings{}
	for _, c := range []struct {
		cmd           *cobra.Command
		key, describe string
	}{
		{newPlan(s), "iterations", "Passes over all treatments."},
		{newProfiles(s), "telemetry", "What is read of the radio and the laptop."},
		{newTopology(s), "links", "The pairs of stations within radio range of each other. They lead from the client to the server."},
	} {
		var b strings.Builder
		c.cmd.SetOut(&b)
		c.cmd.SetArgs([]string{"schema"})
		require.NoError(t, c.cmd.ExecuteContext(t.Context()))
		var schema struct {
			Properties map[string]struct{ Description string }
		}
		require.NoError(t, json.Unmarshal([]byte(b.String()), &schema))
		require.Equal(t, c.describe, schema.Properties[c.key].Description)
	}
}
