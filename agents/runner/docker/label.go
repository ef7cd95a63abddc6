package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

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
	b, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		b = fmt.Appendf(nil, "%s-%08x\n", cfg.Agent, rand.Uint32())
		if err = os.MkdirAll(cfg.StateDir, 0o755); err == nil {
			err = atomicfile.Write(file, b, 0o644)
		}
	}
	label := strings.TrimSpace(string(b))
	if err == nil && label == "" {
		err = fmt.Errorf("%s is empty; expected the label of this agent's containers: remove the file", file)
	}
	if err != nil {
		return "", fmt.Errorf("label of containers: %w", err)
	}
	return label, nil
}
