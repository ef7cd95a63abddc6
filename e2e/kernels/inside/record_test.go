//go:build kernels

package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"linktrial/e2e/kernels/machine"
)

// drivers is the folder of the drivers in the machine.
const drivers = "/drivers"

// notSupported is the error of what this kernel cannot do, and need not.
type notSupported struct{ reason string }

func (e *notSupported) Error() string { return e.reason }

// try runs f and reports what came of it as one row of a table.
func try(t *testing.T, group, name string, f func(t *testing.T) (values []string, err error)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		r := machine.Record{Group: group, Name: name, Outcome: machine.Passed}
		var err error
		r.Values, err = f(t)
		var lacking *notSupported
		switch {
		case errors.As(err, &lacking):
			r.Outcome, r.Detail = machine.NotSupported, lacking.reason
		case err != nil:
			r.Outcome, r.Detail = machine.Failed, err.Error()
			t.Error(err)
		}
		if err := write(r); err != nil {
			t.Fatal(err)
		}
	})
}

// write writes a record to the machine's line for them.
func write(r machine.Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	f, err := os.OpenFile(machine.RecordDevice, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("record: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}
