package store

import (
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/store/storedb"
)

// NewRun is the row of a run that has just been queued. encoded is the sheet as
// agents get it; estimates are the expected seconds of each of its trials.
func NewRun(id, campaign string, s *runsheet.Sheet, encoded []byte, estimates []float64) storedb.InsertRunParams {
	labels := make([]string, 0, len(s.Treatments)+len(s.Mixes))
	for _, t := range s.Treatments {
		labels = append(labels, t.Label)
	}
	for _, m := range s.Mixes {
		labels = append(labels, m.Label)
	}
	return storedb.InsertRunParams{ID: id, CampaignID: campaign, Cell: int32(s.Cell.Index), Sheet: encoded, SheetHash: runsheet.Hash(encoded),
		Radio: s.Cell.Radio, Topology: s.Cell.Topology, SizeBytes: s.Cell.SizeBytes, Trials: int32(len(s.Trials)), EstimatedSeconds: estimates,
		TreatmentLabels: labels, Swept: len(s.Cell.Settings) > 0}
}
