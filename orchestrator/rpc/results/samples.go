package results

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/dbsqlc"
)

// samplesCSV is the one format that report does not write: samples are read
// from the store a trial at a time, so that only the text is in memory.
const samplesCSV = "samples-csv"

var samplesHeader = []string{"run", "trial", "iteration", "treatment", "attempt", "flow", "side", "at", "elapsed_s", "sent_bytes", "acked_bytes",
	"cwnd_bytes", "ssthresh_bytes", "flight_bytes", "srtt_us", "rttvar_us", "rto_us", "retransmits", "timeouts", "loss_events",
	"pacing_bps", "bandwidth_bps", "more"}

// writeSamples is every sample of the runs, in the order of trials; what a
// protocol does not know is left empty, because absent is not zero.
func writeSamples(ctx context.Context, st *store.Store, ds *report.Dataset) (render.File, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.Write(samplesHeader); err != nil {
		return render.File{}, err
	}
	for _, r := range ds.Runs {
		for _, t := range r.Trials {
			rows, err := st.SamplesOfTrial(ctx, dbsqlc.SamplesOfTrialParams{RunID: r.ID, Trial: int32(t.Index)})
			if err != nil {
				return render.File{}, fmt.Errorf("samples of run %s, trial %d: %w", r.ID, t.Index, err)
			}
			for i := range rows {
				if err := w.Write(sampleRow(&t, &rows[i])); err != nil {
					return render.File{}, err
				}
			}
		}
	}
	w.Flush()
	return render.File{Name: "samples.csv", MediaType: "text/csv; charset=utf-8", Content: out.Bytes()}, w.Error()
}

func sampleRow(t *report.Trial, s *dbsqlc.Sample) []string {
	whole := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	real := func(f *float64) string {
		if f == nil {
			return ""
		}
		return strconv.FormatFloat(*f, 'g', -1, 64)
	}
	return []string{s.RunID, strconv.Itoa(t.Index), strconv.Itoa(t.Iteration), t.Treatment, strconv.Itoa(int(s.Attempt)), strconv.Itoa(int(s.Flow)), s.Side,
		s.At.UTC().Format(time.RFC3339Nano), strconv.FormatFloat(time.Duration(s.ElapsedNs).Seconds(), 'f', 6, 64), strconv.FormatInt(s.SentBytes, 10),
		whole(s.AckedBytes), whole(s.CwndBytes), whole(s.SsthreshBytes), whole(s.FlightBytes), whole(s.SrttUs), whole(s.RttvarUs), whole(s.RtoUs),
		whole(s.Retransmits), whole(s.Timeouts), whole(s.LossEvents), real(s.PacingBps), real(s.BandwidthBps), string(s.More)}
}
