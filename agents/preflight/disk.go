package preflight

import (
	"context"
	"fmt"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/internal/checkkind"
)

var diskCheck = nodeCheck{checkkind.Disk, func(ctx context.Context, c Config, w *linktrialv1.PreflightRequest) []*linktrialv1.Check {
	free, err := journal.FreeBytes(c.StateDir)
	return one(judgeDisk(free, err, c.FloorBytes))
}, false}

func judgeDisk(free int64, err error, floor int64) *linktrialv1.Check {
	check := &linktrialv1.Check{State: ok, Expected: fmt.Sprintf("at least %s free for journals", formatBytes(checkkind.EnoughDiskBytes)),
		Meaning: fmt.Sprintf("no trial starts with less than %s free: the run stops there", formatBytes(max(0, floor))),
		Remedy:  "remove what is not needed from the node's disk, or give the agent another state folder (--state)"}
	if err != nil {
		check.State, check.Found = unknown, "could not be found out: "+err.Error()
		return check
	}
	check.Found = formatBytes(free) + " free"
	switch {
	case free < 2*max(0, floor):
		check.State = failed
	case free < checkkind.EnoughDiskBytes:
		check.State = warning
	}
	return check
}

func formatBytes(bytes int64) string {
	if bytes >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
