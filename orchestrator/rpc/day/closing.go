package day

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/report/audit"
	"linktrial/orchestrator/rpc/auditing"
	"linktrial/orchestrator/rpc/rpcdb"
	"linktrial/orchestrator/rpc/shelf"
	"linktrial/orchestrator/store"
)

const (
	// firstFindings is how many findings of a run the summary has; all are in audit.json.
	firstFindings = 5
	// Work beside that for each trial, in units of [shelf.Progress]: what a run and a campaign
	// take however small they are, and a backup.
	runUnits, campaignUnits, backupUnits = 5, 40, 100
	exportPart                           = 2 // units of exports for each trial
)

// closing is the work for one day.
type closing struct {
	cfg      Config
	span     span
	backup   bool
	shelf    *shelf.Shelf
	progress *shelf.Progress
	archive  *archive
	summary  *linktrialv1.DaySummary
	formats  []*linktrialv1.Format // of which there are files in the archive
}

// stem is what names of the day's files begin with.
func (c *closing) stem() string { return "linktrial-day-" + c.span.date }

// run makes the archive. Its error is that there is none; parts that fail are in the summary.
func (c *closing) run(ctx context.Context) (at string, bytes int64, err error) {
	runs, ended, err := c.look(ctx)
	if err != nil {
		return "", 0, err
	}
	at = filepath.Join(c.shelf.Folder(), c.stem()+".zip")
	if c.archive, err = newArchive(at, c.stem(), c.cfg.Now()); err != nil {
		return "", 0, err
	}
	defer c.archive.file.Close() // closed already where all went well
	for i := range ended {
		if err := c.addCampaign(ctx, &ended[i], runs[ended[i].ID]); err != nil {
			return "", 0, err
		}
	}
	if c.backup {
		c.progress.Begin(backupUnits, "backup of the orchestrator")
		if err := c.addBackup(ctx); err != nil {
			return "", 0, err
		}
	}
	c.progress.Begin(0, "writing the archive")
	if err := c.addSummary(); err != nil {
		return "", 0, err
	}
	bytes, err = c.archive.end()
	return at, bytes, err
}

// look reads what ended on the day, with the runs of each campaign, and what is not
// complete.
func (c *closing) look(ctx context.Context) (runs map[string][]rpcdb.RunsOfCampaignsRow, ended []rpcdb.CampaignsEndedRow, err error) {
	c.summary = &linktrialv1.DaySummary{Date: c.span.date, Zone: c.span.zone, From: timestamppb.New(c.span.from), To: timestamppb.New(c.span.to)}
	runs = map[string][]rpcdb.RunsOfCampaignsRow{}
	err = c.cfg.Store.Snapshot(ctx, func(tx store.Conn) error {
		db := rpcdb.New(tx)
		if ended, err = db.CampaignsEnded(ctx, rpcdb.CampaignsEndedParams{Since: c.span.from, Until: c.span.to}); err != nil {
			return err
		}
		var ids []string
		for i := range ended {
			ids = append(ids, ended[i].ID)
		}
		rows, err := db.RunsOfCampaigns(ctx, ids)
		if err != nil {
			return err
		}
		for _, r := range rows {
			runs[r.CampaignID] = append(runs[r.CampaignID], r)
		}
		return c.lookIncomplete(ctx, db, ids)
	})
	units := 0.0
	for i := range ended {
		units += campaignUnits + float64(ended[i].Trials)*(1+exportPart) + runUnits*float64(len(runs[ended[i].ID]))
	}
	if c.backup {
		units += backupUnits
	}
	c.progress.Plan(units)
	return runs, ended, err
}

func (c *closing) lookIncomplete(ctx context.Context, db *rpcdb.Queries, campaigns []string) error {
	open, err := db.RunsUnderWay(ctx, c.span.to)
	if err != nil {
		return err
	}
	for _, r := range open {
		text := fmt.Sprintf("Run %s of %s is not over (%s)", r.ID, nameOf(r.Name, r.Plan), r.State)
		if r.Message != "" {
			text += ": " + r.Message
		}
		c.summary.Incomplete = append(c.summary.Incomplete, text)
	}
	journals, err := db.JournalsNotSealed(ctx, campaigns)
	if err != nil {
		return err
	}
	for _, j := range journals {
		c.summary.Incomplete = append(c.summary.Incomplete, fmt.Sprintf("Run %s: the journal of node %s (%s) is not sealed: %d records are stored, and its end is not; the node delivers the rest when it is connected", j.RunID, j.Node, j.Role, j.CommittedSeq))
	}
	return nil
}

func nameOf(name, plan string) string {
	if name == "" {
		return plan
	}
	return name
}

// addCampaign exports a campaign, audits its runs with those files, and adds both to the
// archive.
func (c *closing) addCampaign(ctx context.Context, e *rpcdb.CampaignsEndedRow, runs []rpcdb.RunsOfCampaignsRow) error {
	x := &linktrialv1.DayCampaign{Id: e.ID, Name: e.Name, Plan: e.Plan, Ended: timestamppb.New(e.EndedAt)}
	c.summary.Campaigns = append(c.summary.Campaigns, x)
	dir, err := c.shelf.Scrap(e.ID)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.progress.Begin(campaignUnits+exportPart*float64(e.Trials), "exporting "+nameOf(e.Name, e.Plan))
	files, err := c.export(ctx, x, dir)
	if err != nil {
		return err
	}
	reports := []*audit.Report{}
	for i := range runs {
		r := &runs[i]
		c.progress.Begin(runUnits+float64(r.Trials), "auditing run "+r.ID)
		row := &linktrialv1.DayRun{Id: r.ID, Radio: r.Radio, Topology: r.Topology, State: r.State}
		x.Runs = append(x.Runs, row)
		report, err := c.audit(ctx, r.ID, dir, files)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			row.Failure = c.explain(ctx, "audit of run "+r.ID, err)
			continue
		}
		reports = append(reports, report)
		count(row, report)
	}
	text, err := json.MarshalIndent(reports, "", "  ")
	if err != nil {
		return err
	}
	return c.archive.add(e.ID+"/audit.json", strings.NewReader(string(text)+"\n"), false)
}

// audit holds a run against the files in a folder, which are the archive's.
func (c *closing) audit(ctx context.Context, run, dir string, files []string) (*audit.Report, error) {
	source := &auditing.Source{Operator: c.cfg.Operator, Results: c.cfg.Results}
	x, err := source.Run(ctx, run)
	if err != nil {
		return nil, err
	}
	for _, name := range audit.ExportNames {
		if x.Ended() && slices.Contains(files, name) {
			x.Exports = append(x.Exports, audit.Export{Name: name, From: name, Open: func() (io.ReadCloser, error) { return os.Open(filepath.Join(dir, name)) }})
		}
	}
	return audit.Audit(x)
}

// count puts a report into the summary.
func count(row *linktrialv1.DayRun, report *audit.Report) {
	row.Findings = int32(report.Findings())
	for _, check := range report.Checks {
		switch check.State {
		case audit.Passed:
			row.Passed++
		case audit.Partly:
			row.Partly++
		case audit.NotChecked:
			row.NotChecked++
		}
		for _, f := range check.Findings {
			if len(row.First) < firstFindings {
				row.First = append(row.First, check.Code+": "+f.String())
			}
		}
	}
}

// export writes all files that there are of a campaign into a folder and into the archive, and
// returns their names. A file that cannot be made is in the summary.
func (c *closing) export(ctx context.Context, x *linktrialv1.DayCampaign, dir string) (files []string, err error) {
	there, err := c.cfg.Results.ListFormats(ctx, connect.NewRequest(&linktrialv1.ListFormatsRequest{Ids: []string{x.Id}}))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		x.Failures = append(x.Failures, "the files could not be listed: "+c.explain(ctx, "formats of campaign "+x.Id, err))
		return nil, nil
	}
	formats := slices.DeleteFunc(there.Msg.Formats, func(f *linktrialv1.Format) bool { return f.OnScreen || f.Document })
	err = shelf.Export(ctx, c.cfg.Results, x.Id, dir, formats, func(e shelf.Exported, done float64) error {
		c.progress.Tell(done)
		if e.Err != nil {
			x.Failures = append(x.Failures, e.Format.FileName+": "+c.explain(ctx, "export of "+e.Name+" of campaign "+x.Id, e.Err))
			return nil
		}
		x.Files++
		files = append(files, e.File)
		if !slices.ContainsFunc(c.formats, func(o *linktrialv1.Format) bool { return o.Name == e.Format.Name }) {
			c.formats = append(c.formats, e.Format)
		}
		return c.archive.addFile(x.Id+"/results/"+e.File, filepath.Join(dir, e.File), false)
	})
	return files, err
}

// addBackup adds a backup to the archive. One that cannot be made is in the summary.
func (c *closing) addBackup(ctx context.Context) error {
	b := &linktrialv1.DayBackup{}
	c.summary.Backup = b
	at := filepath.Join(c.shelf.Folder(), backupName(c.span))
	defer func() { _ = os.Remove(at) }() // else with the next archive
	fingerprint, err := c.cfg.Backup(ctx, at)
	var st os.FileInfo
	if err == nil {
		st, err = os.Stat(at)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		b.Failure = c.explain(ctx, "backup at the end of the day", err)
		return nil
	}
	b.Bytes, b.Fingerprint = st.Size(), fingerprint
	return c.archive.addFile("backup/"+backupName(c.span), at, true)
}

func backupName(s span) string { return "linktrial-backup-" + s.date + ".tar.gz" }

// addSummary adds the summary, for people and for programs.
func (c *closing) addSummary() error {
	text, err := protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(c.summary)
	if err != nil {
		return err
	}
	if err := c.archive.add("summary.json", strings.NewReader(string(text)+"\n"), false); err != nil {
		return err
	}
	return c.archive.add("README.md", strings.NewReader(readme(c.summary, c.formats, c.cfg.Version, c.cfg.Now().UTC().Truncate(time.Second))), false)
}
