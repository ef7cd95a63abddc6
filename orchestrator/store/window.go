package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/storedb"
)

// reasonWindowUnknown is of an attempt of several flows whose common window has no value.
const reasonWindowUnknown = "window-unknown"

// addWindow adds the stored common window to an attempt, whose success counts only
// with a value.
func addWindow(x *report.Attempt, stored json.RawMessage) error {
	if stored == nil {
		return nil
	}
	if err := json.Unmarshal(stored, &x.Window); err != nil {
		return fmt.Errorf("common window: %w", err)
	}
	if x.Window.Unknown != "" && x.Verdict == journal.Succeeded {
		x.Verdict, x.Reason, x.Message = journal.Invalid, reasonWindowUnknown, x.Window.Unknown
	}
	return nil
}

// HasWindows reports whether any trial of a sheet has a common window.
func HasWindows(s *runsheet.Sheet) bool {
	return slices.ContainsFunc(s.Trials, func(t runsheet.Trial) bool { return runsheet.WindowLength(t.Flows) > 0 })
}

// NoteWindow makes the common window of an attempt and stores it, once: when all of
// its flows and what the server reports of them are stored. Before that, and for
// other attempts, it does nothing.
func (s *Store) NoteWindow(ctx context.Context, run string, sheet *runsheet.Sheet, trial, attempt int32) error {
	if int(trial) >= len(sheet.Trials) {
		return nil
	}
	length := runsheet.WindowLength(sheet.Trials[trial].Flows)
	if length <= 0 {
		return nil
	}
	flows, delivered, err := s.arrivals(ctx, run, trial, attempt, len(sheet.Trials[trial].Flows))
	if err != nil || flows == nil {
		return err
	}
	stored, err := json.Marshal(report.MeasureWindow(length, sheet.SampleInterval, flows, delivered))
	if err != nil {
		return err
	}
	return s.q.SetCommonWindow(ctx, storedb.SetCommonWindowParams{RunID: run, Trial: trial, Attempt: attempt, CommonWindow: stored})
}

// arrivals are the flows of an attempt as the server saw them; nil while they are
// not all stored. A server's samples are stored before its report. Delivered bounds what
// the emulated radios delivered to it within any time as long as the window; 0: not known.
func (s *Store) arrivals(ctx context.Context, run string, trial, attempt int32, count int) (out []report.Arrival, delivered int64, err error) {
	rows, err := s.q.WindowFlows(ctx, storedb.WindowFlowsParams{RunID: run, Trial: trial, Attempt: attempt})
	if err != nil {
		return nil, 0, err
	}
	ends := map[int32]storedb.WindowFlowsRow{} // the last of several reports holds
	for _, r := range rows {
		if r.SizeBytes != nil && r.ElapsedNs != nil && int(r.Flow) < count {
			ends[r.Flow] = r
		}
	}
	if len(ends) < count {
		return nil, 0, nil
	}
	if delivered, err = deliveredInWindow(rows[0].Traffic); err != nil {
		return nil, 0, err
	}
	samples, err := s.q.WindowSamples(ctx, storedb.WindowSamplesParams{RunID: run, Trial: trial, Attempt: attempt})
	if err != nil {
		return nil, 0, err
	}
	out = make([]report.Arrival, count)
	for _, x := range samples {
		if int(x.Flow) >= count {
			continue
		}
		a, after := &out[x.Flow], time.Duration(x.ElapsedNs)
		if len(a.Counts) == 0 {
			a.Begin = x.At.Add(-after)
		}
		a.Counts = append(a.Counts, report.Count{After: after, Bytes: x.SentBytes})
	}
	for i := range out {
		a, r := &out[i], ends[int32(i)]
		if len(a.Counts) == 0 {
			a.Begin = r.At.Add(-time.Duration(*r.ElapsedNs))
		}
		if end := (report.Count{After: time.Duration(*r.ElapsedNs), Bytes: *r.SizeBytes}); len(a.Counts) == 0 || end.After > a.Counts[len(a.Counts)-1].After {
			a.Counts = append(a.Counts, end)
		}
	}
	return out, delivered, nil
}

// deliveredInWindow is what the emulated radios delivered to the server within any time as
// long as the window, at most, whosever it was; 0: that was not counted.
func deliveredInWindow(stored json.RawMessage) (sum int64, err error) {
	if stored == nil {
		return 0, nil
	}
	var traffic []radiocontrol.Traffic
	if err := json.Unmarshal(stored, &traffic); err != nil {
		return 0, fmt.Errorf("traffic of the emulated radios: %w", err)
	}
	for _, t := range traffic {
		if t.Destination == radio.RoleServer {
			sum += t.MostInWindow
		}
	}
	return sum, nil
}

// NoteWindows makes the common windows of all attempts that have none and whose
// samples are still there: those that are older than this metric, and those whose
// orchestrator ended at the wrong moment.
func (s *Store) NoteWindows(ctx context.Context, log *slog.Logger) error {
	rows, err := s.q.WindowCandidates(ctx)
	if err != nil {
		return fmt.Errorf("common windows: %w", err)
	}
	var all error
	for _, a := range rows {
		sheet, err := s.Sheet(ctx, a.RunID, a.SheetHash)
		if err == nil {
			err = s.NoteWindow(ctx, a.RunID, sheet, a.Trial, a.Attempt)
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("common window of run %s, trial %d, attempt %d: %w", a.RunID, a.Trial, a.Attempt, err))
		}
	}
	if len(rows) > 0 {
		log.Debug("common windows of earlier attempts were made", "attempts", len(rows))
	}
	return all
}
