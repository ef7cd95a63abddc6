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

// checkTarget returns what the conformance suite runs: a driver of the folder of
// drivers, of another folder, or of an image. An argument that is neither a driver
// nor a path is a reference to an image if it has one of the characters / : @. The
// function that it returns removes what the target needed.
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

// imageTarget unpacks an image into a temporary folder. The suite runs its program
// there, as the image's user, in the suite's own namespaces.
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
			s.Logger().Error("the files of the image are not removed", "folder", root, "error", err)
			return // never remove what is below a mount
		}
		if err := os.RemoveAll(root); err != nil {
			s.Logger().Error("the files of the image are not removed", "folder", root, "error", err)
		}
	}
	u, err := r.Unpack(ctx, ref, root)
	if err == nil {
		// The image's user must be able to enter it.
		err = os.Chmod(root, 0o755)
	}
	if err == nil {
		err = os.MkdirAll(proc, 0o555)
	}
	if err == nil {
		// Through a link the mount would be elsewhere on this machine.
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
