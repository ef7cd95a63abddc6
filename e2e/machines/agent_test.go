package machines

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/agents/agent"
	"linktrial/agents/identity"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
	"linktrial/internal/wallclock"
	"linktrial/orchestrator/server"
)

func agentConfig(t *testing.T, o *orchestrator) agent.Config {
	return agent.Config{Name: "client", Role: radio.RoleClient, Orchestrator: o.URL(), StateDir: t.TempDir(), DriversDir: t.TempDir(), RadioAddress: "192.0.2.1", Version: "v-agent"}
}

// work runs an agent until the returned function is called.
func work(t *testing.T, cfg agent.Config) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, cfg) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// An agent that is started before its token exists enrols when the token appears, and
// needs no token afterwards.
func TestAgentEnrolsByItself(t *testing.T) {
	o := serve(t, nil)
	cfg := agentConfig(t, o)
	cfg.TokenFile = filepath.Join(t.TempDir(), "client.token")
	end := work(t, cfg)
	require.NoError(t, o.Authority().Issue(t.Context(), []string{"client"}, filepath.Dir(cfg.TokenFile)))
	eventually(t, "the node is connected", func() bool { n := states(t, o)["client"]; return n != nil && n.Connected })
	require.Equal(t, linktrialv1.NodeIdentity_STATE_ENROLLED, states(t, o)["client"].State)
	require.NoError(t, end())

	cfg.TokenFile = ""
	eventually(t, "the node is gone", func() bool { return !states(t, o)["client"].Connected })
	end = work(t, cfg)
	eventually(t, "the node is connected again", func() bool { return states(t, o)["client"].Connected })
	require.NoError(t, end())

	cfg.Name = "server"
	says(t, agent.Run(t.Context(), cfg), 0, "is client's and this node is server", "--name client")
}

func TestAgentThatCannotStart(t *testing.T) {
	o := serve(t, nil)
	dir := t.TempDir()
	require.NoError(t, o.Authority().Issue(t.Context(), []string{"server"}, dir))
	used := filepath.Join(dir, "used.token")
	tok := o.token(t, "client")
	_, err := identity.Enrol(t.Context(), newNode(t).enrolment(o.URL(), tok))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(used, []byte(tok.String()), 0o600))
	garbled := filepath.Join(dir, "garbled.token")
	require.NoError(t, os.WriteFile(garbled, []byte("linktrial"), 0o600))
	for name, c := range map[string]struct {
		change func(*agent.Config)
		words  []string
	}{
		"no token":             {func(*agent.Config) {}, []string{"the node is not enrolled", "linktrial node token --name client", "linktrial node enrol"}},
		"a token of another":   {func(c *agent.Config) { c.TokenFile = filepath.Join(dir, "server.token") }, []string{"is for node server and this node is client"}},
		"a used token":         {func(c *agent.Config) { c.TokenFile = used }, []string{"it was used already"}},
		"no token in the file": {func(c *agent.Config) { c.TokenFile = garbled }, []string{garbled, "not a node's token"}},
		"a token for plain":    {func(c *agent.Config) { c.TokenFile, c.Orchestrator = used, "http://"+o.Addr() }, []string{"a token is for an orchestrator that is called with https://"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := agentConfig(t, o)
			c.change(&cfg)
			says(t, agent.Run(t.Context(), cfg), 0, c.words...)
			require.NoFileExists(t, filepath.Join(cfg.StateDir, identity.File))
		})
	}
}

// An agent renews its certificate after two thirds of its validity, while it works.
func TestAgentRenewsWhileItWorks(t *testing.T) {
	start := newClock()
	start.move(-22 * day)
	o := serve(t, func(c *server.Config) { c.Now = start.now })
	cfg := agentConfig(t, o)
	n := &node{cfg.StateDir, start}
	e := n.enrolment(o.URL(), o.token(t, "client"))
	e.Trust = func(keys []*linktrialv1.SigningKey) error { return agent.KeepSigningKeys(cfg.StateDir, keys) }
	id, err := identity.Enrol(t.Context(), e)
	require.NoError(t, err)
	start.move(22 * day) // to the agent's own time
	first := id.Expires()
	require.True(t, time.Now().After(id.Due()))
	end := work(t, cfg)
	eventually(t, "the certificate is renewed", func() bool { return states(t, o)["client"].Expires.AsTime().After(first.Add(20 * day)) })
	eventually(t, "the node works with it", func() bool {
		kept, err := identity.Load(cfg.StateDir, nil)
		return err == nil && kept.Expires().After(first.Add(20*day)) && states(t, o)["client"].Connected
	})
	start.move(9 * day) // past the end of the first
	o.restart(t)
	eventually(t, "the node is connected again", func() bool { return states(t, o)["client"].Connected })
	require.NoError(t, end())
}

// The clock of a node is wrong by a year when its agent starts, with a certificate and
// the token that it had it for: the agent says so, waits, and works when the clock is
// right. The certificate and the runs that it keeps stay.
func TestAgentWithAWrongClock(t *testing.T) {
	for name, by := range map[string]time.Duration{"ahead": 365 * day, "behind": -365 * day} {
		t.Run(name, func(t *testing.T) {
			o := serve(t, nil)
			cfg := agentConfig(t, o)
			n := &node{cfg.StateDir, newClock()}
			tok := o.token(t, "client")
			e := n.enrolment(o.URL(), tok)
			e.Trust = func(keys []*linktrialv1.SigningKey) error { return agent.KeepSigningKeys(cfg.StateDir, keys) }
			_, err := identity.Enrol(t.Context(), e)
			require.NoError(t, err)
			cfg.TokenFile = filepath.Join(t.TempDir(), "client.token")
			require.NoError(t, os.WriteFile(cfg.TokenFile, []byte(tok.String()), 0o600))
			path := filepath.Join(t.TempDir(), "clock")
			set, err := wallclock.NewOffset(path)
			require.NoError(t, err)
			set.Step(by)
			cfg.Clock, err = wallclock.Of(path)
			require.NoError(t, err)
			log := &logged{}
			cfg.Logger = log.logger()
			end := work(t, cfg)
			eventually(t, "the log says whose clock is wrong", func() bool {
				return strings.Contains(log.String(), "this machine's clock says") && strings.Contains(log.String(), name)
			})
			set.Step(-by)
			eventually(t, "the node is connected", func() bool { return states(t, o)["client"].Connected })
			require.NoError(t, end())
		})
	}
}
