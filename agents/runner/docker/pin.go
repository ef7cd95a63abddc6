package docker

import (
	"context"
	"maps"

	"linktrial/agents/runner"
	"linktrial/protocols/contract"
)

// Pin resolves the images' names anew: the images that they refer to now are run
// from here on. None is started.
func (r *Runner) Pin(ctx context.Context) error {
	_, err := r.Images(ctx)
	return err
}

// Pin is [Runner.Pin] for the images that the folder's manifests name now.
func (e *Mixed) Pin(ctx context.Context) error {
	manifests, err := e.processes.Manifests()
	if err != nil {
		return err
	}
	for protocol, image := range e.setImages(manifests) {
		r, err := e.engine(ctx)
		if err != nil {
			return nil // reported where its drivers are listed or started
		}
		r.identify(ctx, protocol, []string{image})
	}
	return ctx.Err()
}

// setImages keeps which of the manifests' drivers are images, and returns those by protocol.
func (e *Mixed) setImages(manifests []*contract.Manifest) map[string]string {
	images := map[string]string{}
	for _, m := range manifests {
		if m.Image != "" && !e.processes.HasProgram(m.Name) {
			images[m.Name] = m.Image
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.images = images
	return maps.Clone(images)
}

func manifestsOf(states []runner.State) (out []*contract.Manifest) {
	for _, s := range states {
		if s.Manifest != nil {
			out = append(out, s.Manifest)
		}
	}
	return out
}
