package docker

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"linktrial/protocols/contract"
)

// Unpacked is an image whose files are laid out in a folder.
type Unpacked struct {
	Manifest *contract.Manifest
	UID, GID uint32 // as which its program runs
}

// Unpack lays out an image's files in dir, as a root file system.
func (r *Runner) Unpack(ctx context.Context, ref, dir string) (u Unpacked, err error) {
	i, err := r.pin(ctx, "", ref)
	if err != nil {
		return u, err
	}
	u.Manifest = i.manifest
	found, err := r.engine.ImageInspect(ctx, i.id)
	if err != nil {
		return u, fmt.Errorf("image %s: %w", ref, err)
	}
	if found.Config != nil {
		if u.UID, u.GID, err = parseUser(found.Config.User); err != nil {
			return u, fmt.Errorf("image %s: %w", ref, err)
		}
	}
	made, err := r.engine.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config:     &container.Config{Image: i.id, Cmd: []string{"-"}, Labels: map[string]string{LabelAgent: r.cfg.Agent}},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		return u, fmt.Errorf("image %s: %w", ref, err)
	}
	defer func() { _ = r.remove(context.WithoutCancel(ctx), made.ID) }()
	files, err := r.engine.ContainerExport(ctx, made.ID, client.ContainerExportOptions{})
	if err != nil {
		return u, fmt.Errorf("image %s: %w", ref, err)
	}
	defer files.Close()
	var said bytes.Buffer
	// Without the engine's own files, and devices, which could not be opened there.
	tar := exec.CommandContext(ctx, "tar", "-C", dir, "-xpf", "-", "--exclude=dev/*", "--exclude=.dockerenv")
	tar.Stdin, tar.Stderr = files, &said
	if err := tar.Run(); err != nil {
		return u, fmt.Errorf("image %s: unpack: %w: %s", ref, err, said.String())
	}
	return u, nil
}

// parseUser reads an image's USER, which must be in numbers: names are known to
// the image alone.
func parseUser(user string) (uid, gid uint32, err error) {
	if user == "" {
		return 0, 0, nil
	}
	name, group, has := strings.Cut(user, ":")
	u, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("its USER is %q, expected numbers such as 65534:65534", user)
	}
	g := u
	if has {
		if g, err = strconv.ParseUint(group, 10, 32); err != nil {
			return 0, 0, fmt.Errorf("its USER is %q, expected numbers such as 65534:65534", user)
		}
	}
	return uint32(u), uint32(g), nil
}
