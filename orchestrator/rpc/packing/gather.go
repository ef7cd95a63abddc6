package packing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/unit"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/rpc/shelf"
	"linktrial/orchestrator/store"
)

// Work beside that for each trial, in units of [shelf.Progress].
const (
	campaignUnits = 60 // what exports and report take however small it is
	exportPart    = 3  // of exports and report, for each trial
	recordUnits   = 0.01
)

// gathering is the work for one bag.
type gathering struct {
	cfg      *Config
	campaign string
	shelf    *shelf.Shelf
	progress *shelf.Progress
	bag      *evidence.Writer
	bundle   evidence.Bundle
	uses     uses
	runs     []store.RunOverview
	nodes    map[string][]store.RunNode // by run
	journals int
	signed   int // of the journals
	// Journals without a signature, and such of which the bag lacks records.
	unsigned, deleted, notKept evidence.JournalsByReason
}

// miss notes what the bag does not have, and why.
func (g *gathering) miss(format string, args ...any) {
	g.bundle.Evidence.Missing = append(g.bundle.Evidence.Missing, fmt.Sprintf(format, args...))
}

// fileName is what the bag is called.
func (g *gathering) fileName() string { return evidence.Folder(g.campaign) + "-evidence.zip" }

// run makes the bag.
func (g *gathering) run(ctx context.Context) (at string, out evidence.Written, err error) {
	at = filepath.Join(g.shelf.Folder(), g.fileName())
	if g.bag, err = evidence.NewWriter(ctx, at, g.campaign, g.cfg.Now()); err != nil {
		return "", out, err
	}
	defer g.bag.Discard()
	before, err := g.state(ctx)
	if err != nil {
		return "", out, err
	}
	if err := g.cfg.Store.Snapshot(ctx, func(tx store.Conn) error { return g.stored(ctx, tx) }); err != nil {
		return "", out, err
	}
	if err := g.parts(ctx); err != nil {
		return "", out, err
	}
	after, err := g.state(ctx)
	if err != nil {
		return "", out, err
	}
	if after != before && g.bundle.Evidence.Complete {
		return "", out, connect.NewError(connect.CodeAborted, errors.New("an attempt of the campaign was marked, or a record of it came, while it was packed: pack it again"))
	}
	g.progress.Begin(0, "signing")
	out, err = g.bag.Finish(&g.bundle)
	return at, out, err
}

// state is the same as long as results are.
func (g *gathering) state(ctx context.Context) (string, error) {
	heads, err := g.cfg.Store.RunHeads(ctx, store.RunHeadsParams{Campaigns: []string{g.campaign}})
	text := ""
	for i := range heads {
		text += fmt.Sprintln(heads[i].ID, heads[i].State, heads[i].Committed, heads[i].Marked)
	}
	return text, err
}

// stored packs what the store has of the campaign at one moment.
func (g *gathering) stored(ctx context.Context, tx store.Conn) error {
	if _, err := tx.Exec(ctx, "SET LOCAL TimeZone TO 'UTC'"); err != nil { // of the moments in rows
		return err
	}
	if err := g.head(ctx, tx); err != nil {
		return err
	}
	for i := range g.runs {
		if err := g.sheet(ctx, tx, &g.runs[i]); err != nil {
			return fmt.Errorf("run %s: %w", g.runs[i].ID, err)
		}
	}
	for i := range tables {
		t := &tables[i]
		if t.where == "" {
			continue
		}
		err := g.bag.Add(path.Join(evidence.Rows, t.name+".jsonl"), "Rows of the table "+t.name+": "+t.why, func(to io.Writer) error {
			return t.write(ctx, tx, g.campaign, to)
		})
		if err != nil {
			return err
		}
		g.bundle.Evidence.Tables = append(g.bundle.Evidence.Tables, t.name)
	}
	return nil
}

// head reads the campaign, its runs and their nodes, and packs the plan.
func (g *gathering) head(ctx context.Context, tx store.Conn) error {
	c, err := tx.Campaign(ctx, g.campaign)
	if err != nil {
		return err
	}
	e := &g.bundle.Evidence
	e.Campaign, e.Plan, e.Version, g.bundle.Name = c.ID, c.Plan, g.cfg.Version, c.Name
	var schema int64
	if err := tx.QueryRow(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&schema); err != nil {
		return err
	}
	e.Schema = strconv.FormatInt(schema, 10)
	if g.runs, err = tx.CampaignOverview(ctx, g.campaign); err != nil {
		return err
	}
	trials := 0.0
	e.Complete = true
	for i := range g.runs {
		r := &g.runs[i]
		if g.nodes[r.ID], err = tx.RunNodes(ctx, r.ID); err != nil {
			return err
		}
		trials += float64(r.Trials)
		if r.EndedAt == nil {
			e.Complete = false
			g.miss("the rest of run %s: it was under way (%s) when this was packed", r.ID, r.State)
		}
	}
	g.progress.Plan(trials*exportPart + campaignUnits + recordUnits*g.estimated())
	if g.bundle.People, err = people(ctx, tx, g.campaign); err != nil {
		return err
	}
	return g.bag.AddBytes(evidence.Plan, "The plan as its director wrote it ("+path.Base(c.PlanFile)+")", c.PlanText)
}

// estimated is about how many records the journals have.
func (g *gathering) estimated() (n float64) {
	for _, nodes := range g.nodes {
		for i := range nodes {
			n += float64(nodes[i].CommittedSeq)
		}
	}
	return n
}

// people are who marked attempts or gave commands.
func people(ctx context.Context, tx store.Conn, campaign string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT given_by FROM run_commands t WHERE `+ofRuns+` UNION SELECT given_by FROM attempt_marks t WHERE `+ofRuns+` ORDER BY 1`, campaign)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return slices.DeleteFunc(names, func(n string) bool { return n == "" || n == journal.Self }), err
}

// sheet packs the sheet of a run, with its signature.
func (g *gathering) sheet(ctx context.Context, tx store.Conn, r *store.RunOverview) error {
	encoded, err := tx.RunSheet(ctx, r.ID)
	if err != nil {
		return err
	}
	sheet, err := runsheet.Decode(encoded)
	if err != nil {
		return err
	}
	g.uses.add(sheet)
	if err := g.bag.AddBytes(evidence.SheetFile(r.ID), "The run sheet as the nodes got it", encoded); err != nil {
		return err
	}
	x := evidence.Run{ID: r.ID, State: r.State, SheetHash: r.SheetHash}
	s, err := tx.RunSignature(ctx, r.ID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		g.miss("the signature of the sheet of run %s: nobody signed it", r.ID)
	case err != nil:
		return err
	default:
		x.SheetKey = s.KeyID
		text, err := json.MarshalIndent(evidence.SheetSignature{KeyID: s.KeyID, Signature: s.Signature}, "", "  ")
		if err != nil {
			return err
		}
		if err := g.bag.AddBytes(evidence.SheetSignatureFile(r.ID), "The orchestrator's signature of that sheet", append(text, '\n')); err != nil {
			return err
		}
	}
	g.bundle.Evidence.Runs = append(g.bundle.Evidence.Runs, x)
	t := evidence.Times{}
	if r.StartedAt != nil {
		t.Began = *r.StartedAt
	}
	if r.EndedAt != nil {
		t.Ended = *r.EndedAt
	}
	g.bundle.Times[r.ID], g.bundle.Sheets[r.ID] = t, fmt.Sprintf("%s over %s, %s", r.Radio, r.Topology, unit.FormatPayload(r.SizeBytes))
	return nil
}

// parts packs what is beside the rows.
func (g *gathering) parts(ctx context.Context) error {
	for i := range g.runs {
		r := &g.runs[i]
		for k := range g.nodes[r.ID] {
			n := &g.nodes[r.ID][k]
			g.progress.Begin(recordUnits*float64(n.CommittedSeq), fmt.Sprintf("packing the journal of node %s of run %s", n.Node, r.ID))
			x, err := g.journal(ctx, r, n)
			if err != nil {
				return fmt.Errorf("journal of node %s of run %s: %w", n.Node, r.ID, err)
			}
			g.bundle.Evidence.Runs[i].Nodes = append(g.bundle.Evidence.Runs[i].Nodes, x)
		}
	}
	g.deleted.Each(func(journals string, _ bool, why string) { g.miss("the samples in %s: %s", journals, why) })
	g.notKept.Each(func(journals string, _ bool, why string) { g.miss("records of %s: %s", journals, why) })
	g.unsigned.Each(func(journals string, several bool, why string) {
		what := "signature"
		if several {
			what = "signatures"
		}
		g.miss("the %s of %s: %s", what, journals, why)
	})
	if err := g.catalog(); err != nil {
		return err
	}
	if err := g.trust(); err != nil {
		return err
	}
	trials := 0.0
	for i := range g.runs {
		trials += float64(g.runs[i].Trials)
	}
	g.progress.Begin(campaignUnits+exportPart*trials, "exporting the results")
	return g.results(ctx)
}
