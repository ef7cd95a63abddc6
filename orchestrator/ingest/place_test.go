package ingest_test

import (
	"crypto/ed25519"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// A run counts as emulated where its node's lab has signed that it is, for this run, sheet
// and role. What a journal claims without that is a real, unnamed radio; the journal
// itself is kept as it came.
func TestPlaceIsProven(t *testing.T) {
	s, _ := open(t)
	in := ingest.New(ingest.Config{Store: s})
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	sheet := storetest.Sheet(1)
	encoded, err := sheet.Encode()
	require.NoError(t, err)
	hash := runsheet.Hash(encoded)
	proof := func(run, hash string, role radio.Role) *journal.LabProof {
		return &journal.LabProof{LabProof: signature.SignLab(key, journal.LabStatement(run, hash, role, "10.77.0.1")), Role: role, Address: "10.77.0.1"}
	}
	moved := proof("moved-1", hash, radio.RoleClient)
	moved.Address = "10.77.0.9"
	for campaign, c := range map[string]struct {
		claim string
		lab   *journal.LabProof
		want  string
	}{
		"proven":    {journal.PlaceEmulated, proof("proven-1", hash, radio.RoleClient), journal.PlaceEmulated},
		"flag":      {journal.PlaceEmulated, nil, journal.PlaceUnnamed},
		"otherrun":  {journal.PlaceEmulated, proof("proven-1", hash, radio.RoleClient), journal.PlaceUnnamed},
		"sheet":     {journal.PlaceEmulated, proof("sheet-1", "another", radio.RoleClient), journal.PlaceUnnamed},
		"role":      {journal.PlaceEmulated, proof("role-1", hash, radio.RoleServer), journal.PlaceUnnamed},
		"moved":     {journal.PlaceEmulated, moved, journal.PlaceUnnamed},
		"nokey":     {journal.PlaceEmulated, &journal.LabProof{Role: radio.RoleClient}, journal.PlaceUnnamed},
		"noguest":   {journal.PlaceVirtual, nil, journal.PlaceUnnamed},
		"realradio": {journal.PlaceReal, nil, journal.PlaceReal},
		"unnamed":   {journal.PlaceUnnamed, nil, journal.PlaceUnnamed},
	} {
		run := storetest.AddRun(t, s, campaign, sheet)
		deliver(t, in, run, hash, c.claim, c.lab)
		o, err := s.RunOverview(t.Context(), run)
		require.NoError(t, err)
		require.Equal(t, c.want, o.Place, campaign)
	}
	// A guest of the virtual-time lab is one by its registration.
	require.NoError(t, s.UpsertNode(t.Context(), store.UpsertNodeParams{Name: "client", Role: "client", Emulated: true, Virtual: true, Drivers: json.RawMessage("[]"), Incarnation: "1"}))
	run := storetest.AddRun(t, s, "guest", sheet)
	require.NoError(t, s.UpsertNode(t.Context(), store.UpsertNodeParams{Name: "client", Role: "client", Emulated: true, Virtual: true, Drivers: json.RawMessage("[]"), Incarnation: "1"}))
	deliver(t, in, run, hash, journal.PlaceVirtual, nil)
	o, err := s.RunOverview(t.Context(), run)
	require.NoError(t, err)
	require.Equal(t, journal.PlaceVirtual, o.Place)
}

func deliver(t *testing.T, in *ingest.Ingester, run, hash, place string, lab *journal.LabProof) {
	t.Helper()
	j := storetest.NewJournal(run, radio.RoleClient)
	j.Add(journal.TypeRunStarted, journal.RunStarted{SheetHash: hash, Version: "test", Trials: 1})
	j.Add(journal.TypeProvenance, journal.Provenance{Host: "host", Kernel: "kernel", Place: place, Lab: lab})
	_, err := in.Deliver(t.Context(), run, "client", batch(j, 1, 2))
	require.NoError(t, err)
}
