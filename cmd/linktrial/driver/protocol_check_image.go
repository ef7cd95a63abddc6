package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"linktrial/agents/runner/docker"
	"linktrial/cmd/linktrial/setting"
	"linktrial/protocols/protocoltest"
)

// checkTarget is what the conformance suite runs: a driver of the folder, of
// another folder, or of an image. An image is known by a colon that is no
// path's, or by being no driver of the folder.
func checkTarget(ctx context.Context, s *setting.Settings, arg, engine string) (protocoltest.Target, func(), error) {
	none := func() {}
	dir, m, err := Find(s, arg)
	if err == nil {
		return protocoltest.Target{Manifest: m, Dir: dir}, none, nil
	}
	if _, serr := os.Stat(arg); serr == nil || strings.HasPrefix(arg, ".") || strings.HasPrefix(arg, "/") || !strings.ContainsAny(arg, "/:@") {
		return protocoltest.Target{}, none, err
	}
	return imageTarget(ctx, s, arg, engine)
}

// imageTarget lays out an image's files; the suite runs its program in them, as
// the image's user, in namespaces of the suite's own.
func imageTarget(ctx context.Context, s *setting.Settings, ref, engine string) (t protocoltest.Target, done func(), err error) {
	if os.Geteuid() != 0 {
		return t, nil, errors.New("checking an image changes into its root file system, which needs root: run the command with sudo")
	}
	r, err := docker.New(ctx, docker.Config{Agent: fmt.Sprintf("check-%d", os.Getpid()), Host: engine, Logger: s.Logger()})
	if err != nil {
		return t, nil, err
	}
	defer func() { _ = r.Close(context.WithoutCancel(ctx)) }() // it started nothing
	root, err := os.MkdirTemp("", "linktrial-check-")
	if err != nil {
		return t, nil, err
	}
	proc := filepath.Join(root, "proc")
	done = func() {
		if err := unix.Unmount(proc, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			s.Logger().Error("image's files stay", "folder", root, "error", err)
			return // never remove what is below a mount
		}
		if err := os.RemoveAll(root); err != nil {
			s.Logger().Error("image's files stay", "folder", root, "error", err)
		}
	}
	u, err := r.Unpack(ctx, ref, root)
	if err == nil {
		// Its user must get there.
		err = os.Chmod(root, 0o755)
	}
	if err == nil {
		err = os.MkdirAll(proc, 0o555)
	}
	if err == nil {
		// A link would have the mount lie elsewhere on this machine.
		if i, lerr := os.Lstat(proc); lerr != nil || !i.IsDir() {
			err = errors.Join(fmt.Errorf("image %s: expected its /proc to be a folder", ref), lerr)
		}
	}
	if err == nil {
		// Drivers read the kernel's settings; a container has it read-only, too.
		err = unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	}
	if err != nil {
		done()
		return t, nil, err
	}
	return protocoltest.Target{Manifest: u.Manifest, Dir: "/", Root: root, UID: u.UID, GID: u.GID}, done, nil
}
