package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"linktrial/cmd/linktrial/driver"
	"linktrial/internal/process"
	"linktrial/internal/radio"
	"linktrial/lab/faults"
	"linktrial/lab/netns"
	"linktrial/orchestrator/postgres"
)

// secondAgents is the folder of their state in a data folder: beside that of the
// others, whose journals are those of the runs.
const secondAgents = "agents/second"

// secondAgent starts another agent of a node's name.
func (r *rehearsal) secondAgent(role radio.Role) (*exec.Cmd, error) {
	i := slices.IndexFunc(r.lab.State.Nodes, func(n netns.NodeState) bool { return n.Role == role })
	if i < 0 {
		return nil, fmt.Errorf("the lab has no node %s", role)
	}
	state := filepath.Join(r.s.Data, secondAgents, string(role))
	trusted, err := driver.WriteTrusted(state, r.keys)
	if err != nil {
		return nil, err
	}
	self, err := r.s.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(r.lab.Folder(), string(role)+"-second.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	n := &r.lab.State.Nodes[i]
	cmd := agentCommand(self, r.lab, n, agentArgs(r.s, r.lab, n, state, trusted, []string{"--runner", r.runner}))
	cmd.Stderr = log
	return cmd, r.lab.Start(role, cmd)
}

// secondOrchestrator runs another orchestrator on this rehearsal's data folder, or on
// its database alone, until it ends or ctx does. It returns the last that it said, and
// whether it ended by itself.
func (r *rehearsal) secondOrchestrator(ctx context.Context, share faults.Share) (said string, ended bool, err error) {
	data, at := r.s.Data, []string{}
	if share == faults.SameDatabase {
		url, running, err := postgres.RunningURL(ctx, r.s.Data)
		if err != nil {
			return "", false, err
		}
		if !running {
			return "", false, errors.New("the database does not answer")
		}
		// Removed with the lab.
		data, at = filepath.Join(r.lab.Folder(), "second-orchestrator"), []string{"--database", url}
	}
	self, err := r.s.Executable()
	if err != nil {
		return "", false, err
	}
	log, err := os.Create(filepath.Join(r.lab.Folder(), "second-orchestrator.log"))
	if err != nil {
		return "", false, err
	}
	defer log.Close()
	args := slices.Concat([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, at, r.s.Folders())
	cmd := exec.Command(self, args...)
	cmd.Stderr = log
	if err := process.Start(cmd); err != nil {
		return "", false, err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	_ = cmd.Wait() // how it ended is in its log
	return lastLine(log.Name()), stop(), nil
}
