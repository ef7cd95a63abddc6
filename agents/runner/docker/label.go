package docker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"linktrial/internal/atomicfile"
)

// labelFile has the label that distinguishes this agent's containers from those
// of a node of the same name, where one engine serves several, as for compose and a rehearsal.
const labelFile = "containers"

// label is the same over restarts: it is kept in the state folder.
func label(cfg Config) (string, error) {
	if cfg.StateDir == "" {
		return cfg.Agent, nil
	}
	file := filepath.Join(cfg.StateDir, labelFile)
	if err := os.MkdirAll(cfg.StateDir, 0o755); err != nil {
		return "", fmt.Errorf("label of containers: %w", err)
	}
	label, err := atomicfile.Keep(file, 0o644, func() string { return fmt.Sprintf("%s-%08x", cfg.Agent, rand.Uint32()) })
	if err == nil && label == "" {
		err = fmt.Errorf("%s is empty; expected the label of this agent's containers: remove the file", file)
	}
	if err != nil {
		return "", fmt.Errorf("label of containers: %w", err)
	}
	return label, nil
}
