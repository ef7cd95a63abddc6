package results

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/rpc/results/resultsdb"
	"linktrial/orchestrator/store"
)

// maxImportText bounds each text beside an imported file, in bytes.
const maxImportText = 200

// ImportCampaign stores the export of another orchestrator's campaign, or nothing.
func (s *Service) ImportCampaign(ctx context.Context, req *connect.Request[linktrialv1.ImportCampaignRequest]) (*connect.Response[linktrialv1.ImportCampaignResponse], error) {
	m := req.Msg
	name := path.Base(strings.ReplaceAll(m.FileName, `\`, "/"))
	if name == "." || name == "/" {
		name = "results.json"
	}
	for what, text := range map[string]string{"name of the file": name, "name of who imports it": m.By, "origin": m.Origin} {
		if len(text) > maxImportText {
			return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s: %d bytes, expected at most %d", what, len(text), maxImportText))
		}
	}
	ds, err := report.ReadImport(m.Content)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s is not imported: %w", name, err))
	}
	row := asRow(ds)
	row.Content, row.Origin, row.FileName, row.GivenBy = m.Content, strings.TrimSpace(m.Origin), name, m.By
	n, err := resultsdb.New(s.cfg.Store).InsertImport(ctx, row)
	if err != nil {
		return nil, s.answer(ctx, "import campaign", err)
	}
	if n == 0 {
		return nil, s.answer(ctx, "import campaign", s.refuseStored(ctx, name, ds.Campaign))
	}
	stored, err := resultsdb.New(s.cfg.Store).Imports(ctx, ds.Campaign)
	if err == nil && len(stored) == 0 {
		err = fmt.Errorf("imported campaign %q, which somebody removed again: %w", ds.Campaign, store.ErrNotFound)
	}
	if err != nil {
		return nil, s.answer(ctx, "import campaign", err)
	}
	x := &stored[0]
	s.cfg.Logger.Info("campaign is imported", "campaign", x.CampaignID, "file", x.FileName, "sha256", x.Sha256, "by", x.GivenBy)
	return connect.NewResponse(&linktrialv1.ImportCampaignResponse{Imported: asImported(x)}), nil
}

// refuseStored says why a campaign cannot be imported that this orchestrator has.
func (s *Service) refuseStored(ctx context.Context, file, campaign string) error {
	stored, err := resultsdb.New(s.cfg.Store).Imports(ctx, campaign)
	if err != nil {
		return err
	}
	why := "this orchestrator measured it itself"
	if len(stored) > 0 {
		x := asImported(&stored[0]).Imported
		why = fmt.Sprintf("it was imported from %s (SHA-256 %s) already; remove that import first to replace it", x.FileName, x.Sha256)
	}
	return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("%s is not imported: campaign %s is here already: %s", file, campaign, why))
}

// asRow is what lists show of a campaign.
func asRow(ds *report.Dataset) resultsdb.InsertImportParams {
	row := resultsdb.InsertImportParams{CampaignID: ds.Campaign, Plan: ds.Plan, Runs: int32(len(ds.Runs)), CreatedAt: ds.Created}
	for i := range ds.Runs {
		r := &ds.Runs[i]
		row.Trials += int32(len(r.Trials))
		row.Radios, row.Topologies = addTo(row.Radios, r.Sheet.Cell.Radio), addTo(row.Topologies, r.Sheet.Cell.Topology)
		row.SizesBytes = addTo(row.SizesBytes, r.Sheet.Cell.SizeBytes)
		row.Place = cmp.Or(r.Place, row.Place)
		for k := range r.Sheet.Treatments {
			t := &r.Sheet.Treatments[k]
			row.Treatments = addTo(row.Treatments, cmp.Or(t.Label, t.Name))
		}
	}
	if row.Treatments == nil {
		row.Treatments = []string{}
	}
	return row
}

func asImported(x *resultsdb.ImportsRow) *linktrialv1.ImportedCampaign {
	return &linktrialv1.ImportedCampaign{Plan: x.Plan, Runs: x.Runs, Trials: x.Trials, Created: timestamppb.New(x.CreatedAt), Place: x.Place,
		Radios: x.Radios, Topologies: x.Topologies, SizesBytes: x.SizesBytes, Treatments: x.Treatments,
		Imported: asOrigin(&report.Import{Campaign: x.CampaignID, Origin: x.Origin, File: x.FileName, SHA256: x.Sha256, By: x.GivenBy, At: x.GivenAt})}
}

// asOrigin is nil where nothing was imported.
func asOrigin(x *report.Import) *linktrialv1.ImportOrigin {
	if x == nil {
		return nil
	}
	return &linktrialv1.ImportOrigin{CampaignId: x.Campaign, Origin: x.Origin, FileName: x.File, Sha256: x.SHA256, By: x.By, At: timestamppb.New(x.At)}
}

func (s *Service) ListImports(ctx context.Context, _ *connect.Request[linktrialv1.ListImportsRequest]) (*connect.Response[linktrialv1.ListImportsResponse], error) {
	rows, err := resultsdb.New(s.cfg.Store).Imports(ctx, "")
	if err != nil {
		return nil, s.answer(ctx, "list imports", err)
	}
	out := &linktrialv1.ListImportsResponse{}
	for i := range rows {
		out.Imports = append(out.Imports, asImported(&rows[i]))
	}
	return connect.NewResponse(out), nil
}

func (s *Service) RemoveImport(ctx context.Context, req *connect.Request[linktrialv1.RemoveImportRequest]) (*connect.Response[linktrialv1.RemoveImportResponse], error) {
	n, err := resultsdb.New(s.cfg.Store).DeleteImport(ctx, req.Msg.CampaignId)
	if err == nil && n == 0 {
		err = fmt.Errorf("imported campaign %q: %w", req.Msg.CampaignId, store.ErrNotFound)
	}
	if err != nil {
		return nil, s.answer(ctx, "remove import", err)
	}
	return connect.NewResponse(&linktrialv1.RemoveImportResponse{}), nil
}
