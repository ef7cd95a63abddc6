// Package processtest writes programs that tests run.
package processtest

import (
	"os"
	"syscall"
	"testing"
)

// WriteExecutable writes a program that the test is about to run.
//
// A process that another test starts while the file is open for writing inherits
// the descriptor until its own exec, and running the file then fails with ETXTBSY.
// WriteExecutable therefore holds back every fork while it writes.
func WriteExecutable(t testing.TB, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
