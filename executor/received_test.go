package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/protocols/contract"
)

// What a server reports of a transfer has the payload that it handed over, and says where a
// count of it ran ahead of that: of each transfer by itself, and of those of the run alone.
func TestReceivedIsWhatWasHandedOver(t *testing.T) {
	sheet, err := runsheet.Decode(testSheet(t, 2, 1))
	require.NoError(t, err)
	r := newReceived(sheet, newTransferTable("r", sheet, NopObserver{}).place)
	id := func(trial int) string { return runsheet.TransferID("r", trial, 1, 0).String() }
	end := func(transfer string) *journal.Received {
		of := &journal.Received{Transfer: transfer, Result: &contract.Result{SizeBytes: 77, ElapsedNS: 1}}
		r.end(of)
		return of
	}
	block := make([]byte, 10)
	honest, ahead := id(0), id(1)
	require.NoError(t, r.Take(honest, block))
	require.NoError(t, r.Take(ahead, block))
	r.Counted(honest, 10)
	r.Counted(ahead, 11)
	require.NoError(t, r.Take(honest, block))
	require.NoError(t, r.Take(ahead, block)) // that it is there later makes it no better
	r.Counted(honest, 20)
	r.Counted(ahead, 20)
	r.Counted("00000000000000000000000000000009", 1)

	got := end(honest)
	require.Empty(t, got.Reason)
	require.EqualValues(t, 20, got.Result.SizeBytes)
	got = end(ahead)
	require.Equal(t, journal.ReasonMoreThanSent, got.Reason)
	require.Contains(t, got.Message, "11 bytes")
	require.Contains(t, got.Message, "handed over 10")
	require.Empty(t, r.of)

	// Of nothing that was handed over nothing can be counted.
	r.Counted(honest, 0)
	require.Empty(t, end(honest).Reason)
	r.Counted(honest, 1)
	require.Equal(t, journal.ReasonMoreThanSent, end(honest).Reason)
}
