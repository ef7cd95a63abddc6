package driver

import (
	"context"
	"fmt"
	"log/slog"

	"linktrial/agents/runner"
	"linktrial/agents/runner/docker"
)

// images returns the drivers in the images of this machine's container engine. It
// runs none of them.
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

// ApproveImages approves the images of this machine's container engine at the
// orchestrator, for run sheets that are made from now on. An empty engine is the
// default one. It returns all images, also those without a digest, which cannot be
// approved.
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
