package uml

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"linktrial/internal/inputfile"
	"linktrial/lab/uml/guest"
)

// maxQuery bounds what a guest writes of its drivers, in bytes; one of them says at
// most a line.
const maxQuery = 16 << 20

// Query boots a guest and asks drivers in it whether they can run there, and which
// values their options can have. Of the config it takes kernel, folders and limits.
func Query(ctx context.Context, cfg RunConfig, drivers []string) ([]guest.Driver, error) {
	cfg.Sheets, cfg.Progress = nil, nil
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	release, err := cfg.Kernel.hold()
	if err != nil {
		return nil, err
	}
	defer release()
	const name = "query"
	r := &runner{cfg: cfg, began: time.Now()}
	if err := r.order(name, guest.Job{Query: drivers}); err != nil {
		return nil, err
	}
	b := &boot{runner: r, cpu: processors()[0], name: name, sheet: -1}
	if err := b.run(ctx); err != nil {
		return nil, fmt.Errorf("query the drivers in a guest: %w", err)
	}
	text, err := inputfile.Read(filepath.Join(cfg.Dir, guest.QueryFile), maxQuery)
	if err != nil {
		return nil, fmt.Errorf("drivers of the guest: %w", err)
	}
	return guest.ParseDrivers(text)
}
