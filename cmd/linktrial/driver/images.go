package driver

import (
	"context"
	"fmt"
	"log/slog"

	"linktrial/agents/runner"
	"linktrial/agents/runner/docker"
)

// images are the drivers that this machine's container engine has; none is run.
func images(ctx context.Context, engine string, log *slog.Logger) ([]runner.State, error) {
	r, err := docker.New(ctx, docker.Config{Agent: "images", Host: engine, Logger: log})
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close(context.WithoutCancel(ctx)) }() // it started nothing
	found, err := r.Images(ctx)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the engine has no image with the label %s: build them with 'make images'", docker.LabelProtocol)
	}
	return found, nil
}

// ApproveImages has run sheets that are made from now on by the orchestrator at
// base accept the images of this machine's engine, whose address can be empty.
// It returns all of them, also those that cannot be named.
func ApproveImages(ctx context.Context, base, engine, reason string, log *slog.Logger) ([]runner.State, error) {
	found, err := images(ctx, engine, log)
	if err != nil {
		return nil, err
	}
	for _, i := range found {
		if i.Driver.Digest == "" {
			continue
		}
		if err := approveDriver(ctx, base, i.Driver.Name, i.Driver.Digest, reason); err != nil {
			return nil, err
		}
	}
	return found, nil
}
