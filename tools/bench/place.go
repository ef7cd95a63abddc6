package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// folder makes a folder for a section of the bench. The function that it returns
// removes it.
func folder(section string) (dir string, remove func(), err error) {
	// The database runs as another user, which must be able to reach it.
	dir, err = os.MkdirTemp("/var/tmp", "linktrial-bench-"+section+"-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	if err := os.Chmod(dir, 0o755); err != nil {
		remove()
		return "", nil, err
	}
	return dir, remove, nil
}

// stop ends what a section has started, also where ctx has ended.
func stop(ctx context.Context, what interface{ Stop(context.Context) error }) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := what.Stop(limited); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
}
