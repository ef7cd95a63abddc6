package executor

import (
	"testing"

	"linktrial/executor/runsheet"
)

func TestTransferIDsAreFound(t *testing.T) {
	s, err := runsheet.Decode(testSheet(t, 3, 1))
	if err != nil {
		t.Fatal(err)
	}
	ids := newTransferIDs("r", s)
	for _, at := range []place{{0, 1, 0}, {2, 2, 0}, {1, 40, 0}} {
		if got, ok := ids.find(runsheet.TransferID("r", at.trial, at.attempt, at.flow).String()); !ok || got != at {
			t.Errorf("found %+v, expected %+v", got, at)
		}
	}
	if got, ok := ids.find(runsheet.TransferID("other", 0, 1, 0).String()); ok {
		t.Errorf("a transfer of another run is %+v", got)
	}
}
