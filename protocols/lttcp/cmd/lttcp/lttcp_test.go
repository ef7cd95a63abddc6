package main

import (
	"testing"

	"linktrial/protocols/protocoltest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	protocoltest.ExerciseGo(t, "lttcp", manifest, nil)
}
