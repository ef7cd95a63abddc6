// Holds a network, for the tests of the runner.
package main

import (
	"fmt"
	"os"
	"runtime"

	"linktrial/agents/runner/docker"
)

func init() { runtime.LockOSThread() }

func main() {
	fmt.Fprintln(os.Stderr, docker.Hold(os.Args[1]))
	os.Exit(1)
}
