package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"linktrial/agents/agent"
	nodeidentity "linktrial/agents/identity"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/installation"
	"linktrial/internal/backoff"
	"linktrial/internal/filelock"
)

// free reports why a state folder cannot be given another identity.
func free(state string) error {
	f, err := os.Open(filepath.Join(state, "lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	err = filelock.TryLock(f, filelock.Shared)
	filelock.Release(f)
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("an agent works in %s: stop it before this laptop joins again", state)
	}
	return err
}

// enrolTries is how often the enrolment is asked for where no answer comes. The token with
// the same key gives the same certificate.
const enrolTries = 3

// enrolInto enrols this laptop. The identity comes into the state folder when it is
// complete; before, the folder is as it was, also where the power fails.
func enrolInto(ctx context.Context, state string, got *nodeidentity.Joined) error {
	beside := state + installation.JoiningSuffix
	if err := os.RemoveAll(beside); err != nil { // of a try that was interrupted
		return fmt.Errorf("state folder: %w", err)
	}
	defer os.RemoveAll(beside)
	e := nodeidentity.Enrolment{Orchestrator: got.Orchestrator, Token: got.Token, Dir: beside,
		Trust: func(keys []*linktrialv1.SigningKey) error { return agent.KeepSigningKeys(beside, keys) }}
	var err error
	for n := range enrolTries {
		if _, err = nodeidentity.Enrol(ctx, e); err == nil {
			return putInPlace(beside, state)
		}
		if errors.Is(err, nodeidentity.ErrRefused) || !backoff.Sleep(ctx, time.Duration(n+1)*time.Second) {
			break
		}
	}
	return fmt.Errorf("%w; nothing was kept here. To try again, add --replace", err)
}

// putInPlace moves the files of one folder into another, the identity last: without it
// the others are of no use. What fails is taken back.
func putInPlace(from, to string) (err error) {
	if err := os.Rename(from, to); err == nil {
		return nil // there was none, or an empty one
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	var undo []func()
	defer func() {
		if err == nil {
			return
		}
		for _, u := range undo {
			u()
		}
		err = fmt.Errorf("state folder: %w", err)
	}()
	move := func(name string) error {
		path, old := filepath.Join(to, name), filepath.Join(from, name+".old")
		switch err := os.Link(path, old); {
		case err == nil:
			undo = append(undo, func() { _ = os.Rename(old, path) })
		case errors.Is(err, fs.ErrNotExist):
			undo = append(undo, func() { _ = os.Remove(path) })
		default:
			return err
		}
		return os.Rename(filepath.Join(from, name), path)
	}
	for _, f := range files {
		if f.Name() == nodeidentity.File {
			continue
		}
		if err := move(f.Name()); err != nil {
			return err
		}
	}
	return move(nodeidentity.File)
}
