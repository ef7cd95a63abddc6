package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"linktrial/agents/agent"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/cmd/linktrial/trial"
)

// results is the folder of the exported files.
func (r *rehearsal) results() string {
	return cmp.Or(r.out, filepath.Join("results", r.campaign))
}

// present prints the table and exports the files.
func (r *rehearsal) present(ctx context.Context) error {
	fmt.Println()
	if err := trial.PrintTable(ctx, r.base, r.client, r.campaign, os.Stdout); err != nil {
		return err
	}
	files, err := trial.Export(ctx, r.base, r.client, &linktrialv1.ResultsRequest{RunId: r.campaign}, r.results(), nil)
	if err != nil {
		return err
	}
	if list, err := r.exportFaults(); err != nil {
		return err
	} else if list != "" {
		files = append(files, list)
	}
	if err := r.showLogs(); err != nil {
		return err
	}
	fmt.Printf("\nExported:\n  %s\n", strings.Join(files, "\n  "))
	fmt.Printf("\nNext:\n  linktrial results %s --format json     all attempts with their provenance\n  linktrial run list                    all runs, newest first\n  linktrial plan explain %s\n", r.campaign, r.file)
	return r.ended(ctx)
}

// logFiles lists the packet logs and the logs of drivers in an agent's state folder,
// by their paths within it.
func logFiles(state string) ([]string, error) {
	var all []string
	for _, pattern := range []string{"runs/*/*.pcapng", "runs/*/" + agent.LogsFolder + "/*"} {
		files, err := fs.Glob(os.DirFS(state), pattern)
		if err != nil {
			return nil, fmt.Errorf("logs of transfers: %w", err)
		}
		all = append(all, files...)
	}
	return all, nil
}

// showLogs says in which folders packet logs and logs of drivers are.
func (r *rehearsal) showLogs() error {
	states, err := os.ReadDir(filepath.Join(r.s.Data, RehearsalAgents))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	count := map[string]int{}
	for _, s := range states {
		state := filepath.Join(r.s.Data, RehearsalAgents, s.Name())
		files, err := logFiles(state)
		if err != nil {
			return err
		}
		for _, f := range files {
			count[filepath.Join(state, filepath.Dir(f))]++
		}
	}
	if len(count) == 0 {
		return nil
	}
	fmt.Println("\nLogs of transfers, until the next rehearsal:")
	for _, dir := range slices.Sorted(maps.Keys(count)) {
		fmt.Printf("  %s  %s\n", dir, terminal.Count(count[dir], "file"))
	}
	return nil
}

// ended returns an error for the first run that did not complete.
func (r *rehearsal) ended(ctx context.Context) error {
	res, err := r.client.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{CampaignId: r.campaign, Limit: 10_000}))
	if err != nil {
		return client.Error(r.base, err)
	}
	for _, run := range res.Msg.Runs {
		if run.State != linktrialv1.RunState_RUN_STATE_COMPLETED {
			return fmt.Errorf("run %s: %s: %s", run.Id, terminal.StateWord(run.State), run.Message)
		}
	}
	return nil
}
