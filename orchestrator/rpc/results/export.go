package results

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/store"
)

// rowWriter writes a file whose rows are read from the store as they are written, so that
// it may be larger than any memory. No data set holds its rows.
type rowWriter func(context.Context, *store.Store, []store.RunHeadsRow, leftOut, *output) error

// rowWriters are of the formats that are made [render.FromRows], by their names.
var rowWriters = map[string]rowWriter{
	samplesCSV: samplesAs(newCSVSamples), samplesParquet: samplesAs(newParquetSamples),
	channelsCSV: writeChannels, readingsCSV: writeReadings,
}

// leftOut are the treatments and mixes that a file does not have.
type leftOut []string

// known refuses names that no run's treatment or mix has.
func (s *Service) known(ctx context.Context, heads []store.RunHeadsRow, l leftOut) error {
	ds := &report.Dataset{}
	for i := 0; i < len(heads) && len(l) > 0; i++ {
		sheet, err := s.cfg.Store.Sheet(ctx, heads[i].ID, heads[i].SheetHash)
		if err != nil {
			return fmt.Errorf("run sheet of %s: %w", heads[i].ID, err)
		}
		ds.Runs = append(ds.Runs, report.Run{Sheet: sheet})
	}
	return isTreatment(ds, l...)
}

// trials are the numbers of a run's trials that are left out; nil: none is.
func (l leftOut) trials(ctx context.Context, st *store.Store, run string) (map[int32]bool, error) {
	if len(l) == 0 {
		return nil, nil
	}
	trials, err := st.Trials(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("trials of run %s: %w", run, err)
	}
	out := map[int32]bool{}
	for i := range trials {
		out[trials[i].Trial] = slices.Contains(l, trials[i].Treatment)
	}
	return out, nil
}

// maxRowExports bounds how many files of rows are made at a time: each has a connection
// to the database, of which there are 12, for as long as its caller takes to read.
const maxRowExports = 4

// shareOfReading is about how much of the work for a file that is made of a data set is to
// read that.
const shareOfReading = 0.7

// export is a file of results before it is written.
type export struct {
	campaign        string
	runs            []string
	name, mediaType string
	parts           int
	write           func(context.Context, *output) error
}

// Export makes a campaign or run into a file and calls send with its pieces, one after the
// other. It ends with the caller's context, when the orchestrator stops, or when the caller
// takes nothing for some time.
func (s *Service) Export(ctx context.Context, m *linktrialv1.ResultsRequest, send func(*linktrialv1.ResultsResponse) error) error {
	told := time.Now()
	e, err := s.open(ctx, m, func(share float64) {
		if time.Since(told) >= tellEvery {
			told = time.Now()
			_ = send(&linktrialv1.ResultsResponse{Done: share * shareOfReading}) // ctx ends with the caller
		}
	})
	if err != nil {
		return s.answer(ctx, "results", err)
	}
	if err := send(&linktrialv1.ResultsResponse{CampaignId: e.campaign, RunIds: e.runs, FileName: e.name, MediaType: e.mediaType, Parts: int32(e.parts)}); err != nil {
		return err
	}
	err = pass(ctx, s.cfg.Stopping, e.write, func(c chunk) error {
		return send(&linktrialv1.ResultsResponse{Content: c.content, Done: c.done})
	})
	return s.answer(ctx, "results", err)
}

// open refuses what cannot be exported. The data set of what is not made of rows it reads,
// and tells which share of it is read.
func (s *Service) open(ctx context.Context, m *linktrialv1.ResultsRequest, tell func(share float64)) (*export, error) {
	f, number, err := formatOf(cmp.Or(m.Format, "table"))
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	o, err := reportOptions(m)
	if err != nil {
		return nil, err
	}
	ids := append([]string{m.RunId}, m.MoreIds...)
	switch f.Source {
	case render.FromRows:
		return s.openRows(ctx, ids, f, m.LeaveOut)
	case render.FromSamples:
		if _, err := s.ownScopes(ctx, ids); err != nil {
			return nil, err
		}
	}
	ds, err := s.datasets(ctx, ids, tell)
	if err != nil {
		return nil, err
	}
	if err := isTreatment(ds, m.LeaveOut...); err != nil {
		return nil, err
	}
	file, err := s.render(ctx, ds, f, number, o)
	if err != nil {
		return nil, err
	}
	e := &export{campaign: ds.Campaign, name: file.Name, mediaType: file.MediaType, parts: file.Parts, write: func(_ context.Context, out *output) error {
		out.done = shareOfReading
		return file.Write(out)
	}}
	for _, r := range ds.Runs {
		e.runs = append(e.runs, r.ID)
	}
	return e, nil
}

// render makes a file of a data set. The number is of an iteration or of a part.
func (s *Service) render(ctx context.Context, ds *report.Dataset, f *render.Format, number int, o report.Options) (render.File, error) {
	if f.Telemetry { // an import has its own
		if err := fillTelemetry(ctx, s.cfg.Store, ds); err != nil {
			return render.File{}, err
		}
	}
	if f.Samples {
		if err := fillSampled(ctx, s.cfg.Store, ds); err != nil {
			return render.File{}, err
		}
	}
	if f.Source == render.FromSamples {
		return drawSequence(ctx, s.cfg.Store, f, ds, number, o.LeaveOut)
	}
	o.Part = number
	return renderAs(ds, f, o)
}

func (s *Service) openRows(ctx context.Context, ids []string, f *render.Format, out leftOut) (*export, error) {
	scopes, err := s.ownScopes(ctx, ids)
	if err != nil {
		return nil, err
	}
	heads, err := s.heads(ctx, scopes)
	if err != nil {
		return nil, err
	}
	if err := s.known(ctx, heads, out); err != nil {
		return nil, err
	}
	e := &export{name: f.File, mediaType: f.MediaType}
	var campaigns []string
	for _, x := range scopes {
		campaigns = addTo(campaigns, x.Campaign)
	}
	for i := range heads {
		e.runs = append(e.runs, heads[i].ID)
	}
	e.campaign = strings.Join(campaigns, ", ")
	e.write = func(ctx context.Context, to *output) error {
		select {
		case s.rowExports <- struct{}{}:
			defer func() { <-s.rowExports }()
		case <-ctx.Done():
			return ctx.Err()
		}
		return rowWriters[f.Name](ctx, s.cfg.Store, heads, out, to)
	}
	return e, nil
}

// heads are the runs of scopes, each once, in the order in which [report.Merge] has them.
func (s *Service) heads(ctx context.Context, scopes []store.Scope) (out []store.RunHeadsRow, err error) {
	var of store.RunHeadsParams
	for _, x := range scopes {
		if x.Run == "" {
			of.Campaigns = append(of.Campaigns, x.Campaign)
		} else {
			of.Runs = append(of.Runs, x.Run)
		}
	}
	rows, err := s.cfg.Store.RunHeads(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("runs to export: %w", err)
	}
	seen := map[string]bool{}
	for _, x := range scopes {
		for i := range rows {
			if r := &rows[i]; r.CampaignID == x.Campaign && (x.Run == "" || x.Run == r.ID) && !seen[r.ID] {
				seen[r.ID] = true
				out = append(out, *r)
			}
		}
	}
	return out, nil
}
