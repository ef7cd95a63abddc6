package radioonly

import (
	"testing"

	"github.com/google/nftables"
	"github.com/stretchr/testify/require"

	"linktrial/internal/namespace/namespacetest"
	"linktrial/protocols/contract"
)

// What others do with the packet filter is noticed before the next driver, though the
// rules are read only where something has changed.
func TestRulesAreHeld(t *testing.T) {
	if !namespacetest.Alone(t) {
		return
	}
	f := New("client", "radio0")
	first := &contract.Parameters{Device: "radio0"}
	there := func() bool {
		c, err := nftables.New()
		require.NoError(t, err)
		s := newRuleset(f.group, f.devices...)
		return s.installed(c)
	}
	require.NoError(t, f.Hold(first))
	require.True(t, there())
	before := generation()
	require.NotZero(t, before)
	require.NoError(t, f.Hold(first))
	require.Equal(t, before, generation(), "rules that are there are left alone")

	for what, change := range map[string]func(c *nftables.Conn){
		"reloaded":            func(c *nftables.Conn) { c.FlushRuleset() },
		"emptied":             func(c *nftables.Conn) { c.FlushChain(newRuleset(f.group, "radio0").chain) },
		"another one's table": func(c *nftables.Conn) { c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "others"}) },
	} {
		c, err := nftables.New()
		require.NoError(t, err)
		change(c)
		require.NoError(t, c.Flush(), what)
		require.NoError(t, f.Hold(first), what)
		require.True(t, there(), what)
	}

	require.NoError(t, f.Hold(&contract.Parameters{Device: "radio0", Paths: []contract.Path{{Device: "radio1"}}}))
	require.Equal(t, []string{"radio0", "radio1"}, f.devices)
	require.True(t, there(), "with a radio more")
	require.NoError(t, f.Remove())
	require.False(t, there())
	require.NoError(t, f.Hold(first))
	require.True(t, there(), "again after the end")
}

func TestGenerationOfAnswer(t *testing.T) {
	for name, answer := range map[string][]byte{
		"empty":     nil,
		"no header": {0, 0},
		"no number": {0, 0, 0, 0},
		"cut":       {0, 0, 0, 0, 8, 0, 1, 0, 0, 0},
		"short":     {0, 0, 0, 0, 6, 0, 1, 0, 0, 7, 0, 0},
	} {
		require.Zero(t, generationOf(answer), name)
	}
	require.EqualValues(t, 7, generationOf([]byte{0, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 7}))
}
