package harness

import (
	"fmt"
	"io"
	"os"

	"linktrial/protocols/contract"
)

// Main is [Drive] with a driver.yaml; it does not return.
func Main(manifest []byte, d Driver) {
	os.Exit(Run(manifest, d, os.Stdin, os.Stdout, os.Stderr))
}

// Run is [Main] on given streams; it returns the exit code.
func Run(manifest []byte, d Driver, stdin io.Reader, stdout, stderr io.Writer) int {
	m, err := contract.ParseManifest("driver.yaml", manifest)
	if err != nil {
		ev := &events{w: stdout, log: newLogger(stderr)}
		return ev.failed("", contract.CodeInternal, fmt.Errorf("the driver's own manifest: %w", err))
	}
	return execute(m, d, stdin, stdout, stderr, signalled)
}
