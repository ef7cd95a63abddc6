package whole

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"linktrial/agents/agent"
	"linktrial/agents/trust"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
	"linktrial/orchestrator/security/signing"
)

// fleet is agents that can be stopped and started again one by one.
type fleet struct {
	b     *bench
	state map[radio.Role]string
	stops map[radio.Role]func()
}

func newFleet(b *bench) *fleet {
	f := &fleet{b, map[radio.Role]string{}, map[radio.Role]func(){}}
	for _, role := range []radio.Role{radio.RoleClient, radio.RoleRelay, radio.RoleServer} {
		f.state[role] = b.t.TempDir()
		f.start(role)
	}
	f.connected(3)
	return f
}

func (f *fleet) start(role radio.Role) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	cfg := agent.Config{Name: string(role), Role: role, Orchestrator: f.b.url, StateDir: f.state[role], DriversDir: f.b.drivers, Device: "lo", RadioAddress: f.b.radio[role], Peers: f.b.radio,
		Trust: trust.Config{File: filepath.Join(signing.Dir(f.b.data), signing.PublicFile)}, FloorBytes: -1, JudgementWait: judgementWait, Version: "test", Logger: slog.New(slog.DiscardHandler)}
	go func() { done <- agent.Run(ctx, cfg) }()
	f.stops[role] = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.b.t.Errorf("agent %s: %v", role, err)
		}
	})
	f.b.t.Cleanup(f.stops[role])
}

func (f *fleet) connected(want int) {
	f.b.t.Helper()
	require.Eventually(f.b.t, func() bool {
		n := 0
		for _, x := range f.nodes() {
			if x.Connected {
				n++
			}
		}
		return n == want
	}, time.Minute, 20*time.Millisecond, "nodes connect")
}

func (f *fleet) nodes() []*linktrialv1.Node {
	res, err := f.b.operator.ListNodes(f.b.t.Context(), connect.NewRequest(&linktrialv1.ListNodesRequest{}))
	if err != nil {
		return nil
	}
	return res.Msg.Nodes
}

// A file of a run that is damaged or lost while its node was down ends the run with
// the node, the damage and what to do, and the next run is possible.
func TestDamagedFilesOfARun(t *testing.T) {
	long := strings.Replace(plan, "iterations: 2", "iterations: 3000", 1)
	write := func(text string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o644) }
	}
	for _, c := range []struct {
		name string
		role radio.Role
		file string
		harm func(path string) error
		want []string
	}{
		{"a journal with a corrupt line", radio.RoleClient, "journal.jsonl", func(path string) error {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			lines := bytes.SplitAfter(b, []byte("\n"))
			lines[len(lines)/2] = bytes.Replace(lines[len(lines)/2], []byte(`"`), []byte("#"), 3)
			return os.WriteFile(path, bytes.Join(lines, nil), 0o644)
		}, []string{"node client", "journal", "damaged at line"}},
		{"a journal that is lost", radio.RoleServer, "journal.jsonl", os.Remove, []string{"node server", "journal", "is missing"}},
		{"a journal that is empty", radio.RoleClient, "journal.jsonl", write(""), []string{"node client", "journal", "is missing"}},
		{"a folder instead of a journal", radio.RoleRelay, "journal.jsonl", func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Mkdir(path, 0o755)
		}, []string{"node relay", "journal", "it is a folder, expected a regular file"}},
		{"a sheet that is lost", radio.RoleServer, "sheet.json", os.Remove, []string{"node server", "run sheet", "damaged or missing"}},
		{"a sheet that is cut short", radio.RoleClient, "sheet.json", func(path string) error { return os.Truncate(path, 100) }, []string{"node client", "run sheet", "damaged: its hash is"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			f := newFleet(b)
			res, err := b.operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "test.yaml", Text: []byte(long)}))
			require.NoError(t, err)
			require.Empty(t, res.Msg.Problems)
			run := res.Msg.RunIds[0]
			require.Eventually(t, func() bool { return b.attempts(run) >= 3 }, time.Minute, 20*time.Millisecond, "trials are run")
			f.stops[c.role]()
			path := filepath.Join(f.state[c.role], "runs", run, c.file)
			require.NoError(t, c.harm(path))
			f.start(c.role)

			ended := b.end(res.Msg)
			require.Equal(t, linktrialv1.RunState_RUN_STATE_STOPPED, ended.State, ended.Message)
			for _, w := range append(c.want, path, "start the run anew") {
				require.Contains(t, ended.Message, w)
			}
			f.connected(3)
			next := b.end(b.start())
			require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, next.State, next.Message)
		})
	}
}

// Files of a state folder that cannot be read are set aside, named to people, and the
// agent works without them.
func TestBadFilesInTheStateFolder(t *testing.T) {
	b := newBench(t)
	f := newFleet(b)
	first := b.end(b.start())
	require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, first.State, first.Message)

	f.stops[radio.RoleClient]()
	dir := f.state[radio.RoleClient]
	note := filepath.Join(dir, "runs", first.Id, "assignment.json")
	bad := []string{note, filepath.Join(dir, "runs", "a-file"), filepath.Join(dir, "pids", "7.json")}
	require.NoError(t, os.WriteFile(note, []byte(`{"run": "`), 0o644))
	require.NoError(t, os.WriteFile(bad[1], []byte("?"), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(bad[2], "x"), 0o755))
	f.start(radio.RoleClient)
	f.connected(3)
	require.Eventually(t, func() bool {
		for _, n := range f.nodes() {
			if n.Name == "client" {
				return len(n.Faults) >= 2
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond, "the node reports them")
	var told string
	for _, n := range f.nodes() {
		told += strings.Join(n.Faults, "\n")
	}
	for _, path := range bad[:2] {
		require.Contains(t, told, path)
	}
	for _, path := range bad {
		require.NoFileExists(t, path)
		_, err := os.Stat(path + ".damaged")
		require.NoError(t, err)
	}
	next := b.end(b.start())
	require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, next.State, next.Message)
}

// A run whose nodes are in an earlier one says which that is and how to end it.
func TestRunBehindAStuckOne(t *testing.T) {
	b := newBench(t)
	f := newFleet(b)
	long := strings.Replace(plan, "iterations: 2", "iterations: 3000", 1)
	stuck, err := b.operator.StartPlan(t.Context(), connect.NewRequest(&linktrialv1.StartPlanRequest{File: "test.yaml", Text: []byte(long)}))
	require.NoError(t, err)
	require.Empty(t, stuck.Msg.Problems)
	first := stuck.Msg.RunIds[0]
	require.Eventually(t, func() bool { return b.attempts(first) >= 1 }, time.Minute, 20*time.Millisecond)

	second := b.start()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := b.operator.Watch(ctx, connect.NewRequest(&linktrialv1.WatchRequest{CampaignId: second.CampaignId}))
	require.NoError(t, err)
	defer stream.Close()
	note := ""
	for note == "" && stream.Receive() {
		note = stream.Msg().GetNote().GetText()
	}
	require.NoError(t, stream.Err())
	for _, w := range []string{"run " + second.RunIds[0] + " waits for the end of run " + first, "running", "client and ", "linktrial run abort " + first} {
		require.Contains(t, note, w)
	}
	_, err = b.operator.AbortCampaign(ctx, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: stuck.Msg.CampaignId, Reason: "test"}))
	require.NoError(t, err)
	require.Equal(t, linktrialv1.RunState_RUN_STATE_COMPLETED, b.end(second).State)
	f.connected(3)
}
