// Package checkout finds the folder of a checkout for tests and tools that use what is in
// it. With -trimpath the compiler records no paths that would tell.
package checkout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Root is the nearest folder with a go.mod at or above the working folder, which in a test
// is that of the tested package.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("checkout: no go.mod at or above the working folder")
		}
		dir = filepath.Dir(dir)
	}
}
