package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"linktrial/cmd/linktrial/lab"
	"linktrial/cmd/linktrial/setting"
	"linktrial/orchestrator/report"
)

// rehearsed runs a plan on its own data folder and returns the results, the leading
// agent's folder of the run, and a function that removes everything.
func rehearsed(ctx context.Context, s *setting.Settings, plan string, flags ...string) (ds *report.Dataset, runDir string, remove func(), err error) {
	dir, clean, err := folder("rehearsal")
	if err != nil {
		return nil, "", nil, err
	}
	defer func() {
		if err != nil {
			clean()
		}
	}()
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o644); err != nil {
		return nil, "", nil, err
	}
	cmd := exec.CommandContext(ctx, s.Program, append([]string{"rehearse", file, "--out", filepath.Join(dir, "out"), "--data", dir, "--drivers", s.Drivers,
		"--orchestrator", "http://127.0.0.1:9"}, flags...)...) // nobody listens there, so that it starts its own
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if b, err := cmd.CombinedOutput(); err != nil {
		return nil, "", nil, fmt.Errorf("rehearsal for the bench: %w\n%s", err, b)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out", "results.json"))
	if err != nil {
		return nil, "", nil, err
	}
	if ds, err = report.ReadJSON(b); err != nil {
		return nil, "", nil, err
	}
	return ds, filepath.Join(dir, lab.RehearsalAgents, "client", "runs", ds.Runs[0].ID), clean, nil
}
