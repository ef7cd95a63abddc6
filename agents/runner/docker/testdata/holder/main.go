// Holds a network, for the tests of the runner.
package main

import (
	"fmt"
	"os"

	"linktrial/agents/runner/docker"
)

func main() {
	fmt.Fprintln(os.Stderr, docker.Hold(os.Args[1]))
	os.Exit(1)
}
