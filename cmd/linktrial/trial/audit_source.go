package trial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/internal/faultlog"
	"linktrial/orchestrator/report/audit"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/rpc/auditing"
)

// AuditRequest says what is audited, and where its files are.
type AuditRequest struct {
	ID string // a run or a campaign, or a beginning of its identity; empty: the newest campaign
	// Journals are folders below which nodes' journals are, as RUN/journal.jsonl.
	Journals []string
	// Faults is the list of injected faults; empty: that of Exports, if it is there.
	Faults string
	// Exports is a folder of exported results; empty: none. What the orchestrator
	// exports now is checked in any case.
	Exports string
	// Progress is told what is being done; nil: nobody is.
	Progress func(text string)
}

// Audit audits the runs that a request names, each by itself, with an orchestrator
// that answers at base.
func Audit(ctx context.Context, base string, req AuditRequest) ([]*audit.Report, error) {
	var out []*audit.Report
	err := EachAudited(ctx, base, req, func(run *audit.Run) error {
		report, err := audit.Audit(run)
		if err != nil {
			return client.Error(base, err)
		}
		out = append(out, report)
		return nil
	})
	return out, err
}

// EachAudited calls f for every run that a request names, with all that it is audited
// by.
func EachAudited(ctx context.Context, base string, req AuditRequest, f func(*audit.Run) error) error {
	if req.Progress == nil {
		req.Progress = func(string) {}
	}
	s := &auditSource{base: base, req: req, http: client.HTTP()}
	s.operator = linktrialv1connect.NewOperatorServiceClient(s.http, base, client.Options())
	s.result = linktrialv1connect.NewResultServiceClient(s.http, base, client.Options())
	defer s.http.CloseIdleConnections()
	runs, err := s.runs(ctx)
	if err != nil {
		return err
	}
	if err := s.readFaults(); err != nil {
		return err
	}
	if req.Exports != "" {
		if _, err := os.ReadDir(req.Exports); err != nil {
			return fmt.Errorf("--exports: %w", err)
		}
	}
	journals, err := findJournals(req.Journals, runs)
	if err != nil {
		return err
	}
	for _, id := range runs {
		run, err := s.gather(ctx, id, journals[id])
		if err != nil {
			return err
		}
		if err := f(run); err != nil {
			return err
		}
	}
	return nil
}

type auditSource struct {
	base     string
	req      AuditRequest
	http     *http.Client
	operator linktrialv1connect.OperatorServiceClient
	result   linktrialv1connect.ResultServiceClient
	faults   []faultlog.Fault
}

// runs are the identities of the runs that are meant, oldest first.
func (s *auditSource) runs(ctx context.Context) ([]string, error) {
	id := s.req.ID
	if strings.Contains(id, "-") {
		res, err := s.operator.GetRun(ctx, connect.NewRequest(&linktrialv1.GetRunRequest{RunId: id}))
		if err != nil {
			return nil, client.Error(s.base, err)
		}
		return []string{res.Msg.Run.Id}, nil
	}
	var campaign string
	if id != "" {
		c := &commander{operator: s.operator}
		var err error
		if campaign, err = c.campaign(ctx, id); err != nil {
			return nil, client.Error(s.base, err)
		}
	} else {
		res, err := s.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 1}))
		if err != nil {
			return nil, client.Error(s.base, err)
		}
		if len(res.Msg.Runs) == 0 {
			return nil, errors.New("there are no runs yet")
		}
		campaign = res.Msg.Runs[0].CampaignId
	}
	res, err := s.operator.ListRuns(ctx, connect.NewRequest(&linktrialv1.ListRunsRequest{Limit: 10_000, CampaignId: campaign}))
	if err != nil {
		return nil, client.Error(s.base, err)
	}
	var out []string
	for _, r := range res.Msg.Runs {
		out = append(out, r.Id)
	}
	slices.Reverse(out)
	return out, nil
}

func (s *auditSource) readFaults() error {
	path := s.req.Faults
	if path == "" && s.req.Exports != "" {
		path = filepath.Join(s.req.Exports, faultlog.FileName)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if s.faults, err = faultlog.Read(f); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if s.faults == nil {
		s.faults = []faultlog.Fault{} // it is known that there were none
	}
	return nil
}

// journalDepth is how far below a named folder journals are looked for: a data folder
// has them at agents/rehearsal/ROLE/runs/RUN/journal.jsonl.
const journalDepth = 8

// findJournals looks for the journals of runs.
func findJournals(folders, runs []string) (map[string][]audit.Journal, error) {
	out := map[string][]audit.Journal{}
	seen := map[string]bool{}
	for _, folder := range folders {
		found := 0
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil && path == folder:
				return err
			case err != nil: // a database's folder is nobody else's
				return nil
			case d.IsDir() && strings.Count(strings.TrimPrefix(path, folder), string(filepath.Separator)) > journalDepth:
				return fs.SkipDir
			case d.Name() != "journal.jsonl" || !d.Type().IsRegular():
				return nil
			}
			full, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			run := filepath.Base(filepath.Dir(full))
			if !slices.Contains(runs, run) {
				return nil
			}
			found++
			if !seen[full] {
				seen[full] = true
				out[run] = append(out[run], audit.Journal{Path: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if found == 0 {
			return nil, fmt.Errorf("--journals %s: no journal of %s is below it, expected %s (an agent keeps it at runs in its state folder)", folder,
				strings.Join(runs, ", "), filepath.Join(runs[0], "journal.jsonl"))
		}
	}
	return out, nil
}

// gather brings together what one run is audited by.
func (s *auditSource) gather(ctx context.Context, id string, journals []audit.Journal) (*audit.Run, error) {
	source := &auditing.Source{Operator: s.operator, Results: s.result, Progress: s.req.Progress}
	run, err := source.Run(ctx, id)
	if err != nil {
		return nil, client.Error(s.base, err)
	}
	run.Journals = journals
	if s.faults != nil {
		run.Faults = faultlog.OfRun(s.faults, id)
	}
	if run.Ended() {
		err = s.addExports(ctx, run)
	}
	return run, err
}

// addExports adds exported files.
func (s *auditSource) addExports(ctx context.Context, run *audit.Run) error {
	s.req.Progress(fmt.Sprintf("run %s: reading exports", run.ID))
	for _, name := range audit.ExportNames {
		// Rows can take long to make: their files are read where a folder has them.
		if f := render.OfFile(name); f.Source == render.FromDataset {
			content, err := s.export(ctx, run.ID, f.Name)
			if err != nil {
				return err
			}
			run.Exports = append(run.Exports, audit.Export{Name: name, From: "the orchestrator's " + name,
				Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }})
		}
		if s.req.Exports == "" {
			continue
		}
		path := filepath.Join(s.req.Exports, name)
		switch info, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no regular file", path)
		default:
			run.Exports = append(run.Exports, audit.Export{Name: name, From: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }})
		}
	}
	return nil
}

// export returns a whole file: what ends half-way is no finding.
func (s *auditSource) export(ctx context.Context, run, format string) ([]byte, error) {
	in, err := openResults(ctx, s.operator, &linktrialv1.ResultsRequest{RunId: run, Format: format}, nil)
	if err != nil {
		return nil, client.Error(s.base, err)
	}
	defer in.close()
	content, err := io.ReadAll(in)
	return content, client.Error(s.base, err)
}
