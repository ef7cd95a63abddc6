package agent

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/agents/runner"
	"linktrial/executor"
	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

// ending is a process whose end the test decides.
type ending struct {
	executor.Process
	done chan struct{}
}

func (e ending) Done() <-chan struct{} { return e.done }

type starting struct{ done chan struct{} }

func (s starting) Start(context.Context, string, *contract.Parameters, io.Reader) (executor.Process, error) {
	return ending{done: s.done}, nil
}

// Who may have changed the node's network are the drivers that ran and could.
func TestConfigurers(t *testing.T) {
	n := &node{drivers: []runner.State{
		{Driver: journal.Driver{Name: "process"}, Manifest: &contract.Manifest{Capabilities: []string{"CAP_NET_ADMIN"}}, Dir: "/drivers/process"},
		{Driver: journal.Driver{Name: "confined"}, Manifest: &contract.Manifest{Capabilities: []string{"CAP_BPF"}}, Dir: "/drivers/confined"},
		{Driver: journal.Driver{Name: "container"}, Manifest: &contract.Manifest{}},
		{Driver: journal.Driver{Name: "asks"}, Manifest: &contract.Manifest{Capabilities: []string{"CAP_SYS_ADMIN"}}},
		{Driver: journal.Driver{Name: "idle"}, Manifest: &contract.Manifest{Capabilities: []string{"CAP_NET_ADMIN"}}, Dir: "/drivers/idle"},
	}}
	done := make(chan struct{})
	c := newConfigurers(starting{done}, n.mayConfigure)
	for _, name := range []string{"process", "confined", "container", "asks"} {
		_, err := c.runner().Start(t.Context(), name, nil, nil)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"asks", "process"}, c.names())
	close(done)
	ended := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.running["asks"]+c.running["process"] == 0
	}
	require.Eventually(t, ended, 10*time.Second, time.Millisecond)
	require.Equal(t, []string{"asks", "process"}, c.names(), "they ran lately")
	c.mu.Lock()
	c.ended["asks"] = time.Now().Add(-2 * lately)
	c.mu.Unlock()
	require.Equal(t, []string{"process"}, c.names())

	require.True(t, n.mayConfigure("of another run"), "it is not known")
	n.cfg.Drivers.Unconfined = true
	require.True(t, n.mayConfigure("confined"), "nothing confines it")
	require.False(t, n.mayConfigure("container"))
}
