package runner_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/agents/radioonly"
	"linktrial/agents/runner"
	"linktrial/internal/namespace/namespacetest"
)

// A driver that is a process sends over the radio alone: neither over the control network
// nor to programs of its node.
func TestProcessesReachTheRadioAlone(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	s := hostile(t)
	for i, device := range []string{"radio0", "control0", "radio1"} {
		namespacetest.IP(t, "link add %[1]s type veth peer name %[1]sp", device)
		namespacetest.IP(t, "link set %sp up", device)
		namespacetest.IP(t, "addr add 10.91.%d.1/24 dev %s", i+1, device)
		namespacetest.IP(t, "link set %s up", device)
	}
	namespacetest.IP(t, "link set lo up")
	over, past := []string{"send:10.91.1.2:9"}, []string{"send:10.91.2.2:9", "send:127.0.0.1:9", "send:10.91.3.2:9", "send:10.91.1.1:9"}
	filter := radioonly.New("client", "radio0")
	did, level := s.run(t, runner.Config{Confined: true, RadioOnly: filter}, append(over, past...)...)
	require.Contains(t, level, "the radio's network alone")
	for _, what := range over {
		require.Equal(t, "done", did[what], what)
	}
	for _, what := range past {
		require.Contains(t, did[what], "operation not permitted", what)
	}
	require.NoError(t, filter.Remove())
	did, level = s.run(t, runner.Config{Confined: true}, append(over, past...)...)
	for _, what := range append(over, past...) {
		require.Equal(t, "done", did[what], "%s without the filter: the test tells nothing", what)
	}
	require.False(t, strings.Contains(level, "alone"), level)
}
