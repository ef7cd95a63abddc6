package main

import (
	"testing"

	"linktrial/protocols/protocoltest"
)

// Over Multipath TCP the driver is the same by the contract; the suite's network has
// one path.
func TestConformanceMultipath(t *testing.T) {
	if err := kernelHasMultipath(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	protocoltest.ExerciseGo(t, "tcp", manifest, map[string]any{"multipath": true})
}

func TestConformance(t *testing.T) {
	t.Parallel()
	protocoltest.ExerciseGo(t, "tcp", manifest, nil)
}
