package server_test

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/agentprotocol"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// A node that takes more than it may is refused with a sentence, and the metrics say which
// bound it was: whoever watches them sees a node that fills the store, or one that is
// broken, before the disk is full.
func TestRefusalsForBoundsAreCounted(t *testing.T) {
	url := storetest.URL(t)
	s := serveAll(t, url, t.TempDir(), nil)
	still := []string{`linktrial_over_bound_total{bound="certificates"} 0`, `linktrial_over_bound_total{bound="journal"} 0`}
	for _, want := range append(still, `linktrial_over_bound_total{bound="drivers"} 0`, `linktrial_over_bound_total{bound="late"} 0`) {
		require.Contains(t, get(t, s.clients, "/metrics"), want, "a metric that appears only with the first refusal cannot be watched")
	}
	many := &linktrialv1.RegisterRequest{Protocol: agentprotocol.Number, Name: "client", Role: "client", Emulated: true, Incarnation: "1"}
	_, err := s.agent.Register(t.Context(), connect.NewRequest(many))
	require.NoError(t, err)
	for range 201 {
		many.Drivers = append(many.Drivers, &linktrialv1.DriverState{Name: "tcp"})
	}
	_, err = s.agent.Register(t.Context(), connect.NewRequest(many))
	fails(t, err, connect.CodeInvalidArgument, "201 drivers, at most 200")

	st, err := store.Open(t.Context(), url, nil)
	require.NoError(t, err)
	defer st.Close()
	sheet := storetest.Sheet(1)
	run := storetest.AddRun(t, st, "late", sheet)
	j := storetest.Lead(run, sheet, 2)
	ended := len(j.Records)
	for size := 0; size < 2<<20; size += len(j.Records[len(j.Records)-1]) {
		j.Samples(0, 2, 500)
	}
	deliver := func(from, to int) error {
		m := &linktrialv1.DeliverRequest{RunId: run, Name: "client", Incarnation: "1"}
		for i := from; i < to; i++ {
			m.Records = append(m.Records, &linktrialv1.JournalRecord{Seq: int64(i + 1), Json: j.Records[i]})
		}
		_, err := s.agent.Deliver(t.Context(), connect.NewRequest(m))
		return err
	}
	require.NoError(t, deliver(0, ended))
	fails(t, deliver(ended, len(j.Records)), connect.CodeFailedPrecondition, "came after the end")
	metrics := get(t, s.clients, "/metrics")
	for _, want := range append(still, `linktrial_over_bound_total{bound="drivers"} 1`, `linktrial_over_bound_total{bound="late"} 1`, `linktrial_deliveries_total{outcome="over-bound"} 1`) {
		require.Contains(t, metrics, want)
	}
}
