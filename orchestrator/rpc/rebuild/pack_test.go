package rebuild

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/journal"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/rpc/results"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// version is that of the tests' program.
const version = "test"

// folder is a bag that was unpacked.
type folder string

func (f folder) Open(name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(f), filepath.FromSlash(name)))
}

func (f folder) Names() (out []string) {
	_ = fs.WalkDir(os.DirFS(string(f)), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, name)
		}
		return err
	})
	return out
}

func (f folder) write(t testing.TB, name string, content []byte) {
	t.Helper()
	at := filepath.Join(string(f), filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
	require.NoError(t, os.WriteFile(at, content, 0o600))
}

func (f folder) text(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(string(f), filepath.FromSlash(name)))
	require.NoError(t, err)
	return string(b)
}

// replace replaces a text once in a file.
func (f folder) replace(t testing.TB, name, old, by string) {
	t.Helper()
	text := f.text(t, name)
	require.Contains(t, text, old)
	f.write(t, name, []byte(strings.Replace(text, old, by, 1)))
}

// original is the orchestrator that measured.
type original struct {
	t       testing.TB
	store   *store.Store
	conn    *pgx.Conn
	engine  *campaign.Engine
	catalog *catalog.Catalog
	after   func(round int) // of records; nil: nothing happens meanwhile
}

// nodeJournal is the records of a node.
type nodeJournal struct {
	run, node string
	records   [][]byte
}

// own is the journal of a node that is named for its role.
func own(j *storetest.Journal) nodeJournal { return nodeJournal{j.Run, string(j.Role), j.Records} }

// newOriginal is one whose engine does not run yet.
func newOriginal(t testing.TB) *original {
	t.Helper()
	at := storetest.URL(t)
	st, err := store.Open(t.Context(), at, nil)
	require.NoError(t, err)
	t.Cleanup(st.Close)
	conn, err := pgx.Connect(t.Context(), at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return &original{t: t, store: st, conn: conn}
}

func (o *original) exec(sql string, args ...any) {
	o.t.Helper()
	_, err := o.conn.Exec(o.t.Context(), sql, args...)
	require.NoError(o.t, err)
}

// measure is [original.deliver] to the end of the run.
func (o *original) measure(run string, journals ...nodeJournal) {
	o.t.Helper()
	o.deliver(run, journals...)
	require.Eventually(o.t, func() bool {
		r, err := o.store.RunOverview(o.t.Context(), run)
		require.NoError(o.t, err)
		return r.EndedAt != nil
	}, 20*time.Second, 20*time.Millisecond, "the run does not end")
}

// deliver has the engine take the journals of a run that is under way: a record of each node
// in turn.
func (o *original) deliver(run string, journals ...nodeJournal) {
	o.t.Helper()
	o.exec(`UPDATE runs SET state = 'running', prepared_at = now(), started_at = now() WHERE id = $1`, run)
	var err error
	o.engine, err = campaign.Start(o.t.Context(), campaign.Config{Store: o.store})
	require.NoError(o.t, err)
	o.t.Cleanup(o.engine.Stop)
	in := ingest.New(ingest.Config{Store: o.store, Stored: o.engine.Stored})
	for round, more := 1, true; more; round++ {
		more = false
		for _, j := range journals {
			if round <= len(j.records) {
				more = true
				_, err := in.Deliver(o.t.Context(), run, j.node, []ingest.Record{{Seq: int64(round), JSON: j.records[round-1]}})
				require.NoError(o.t, err)
			}
		}
		if o.after != nil {
			o.after(round)
		}
	}
}

// ofCampaign are the tables of a bag, with what chooses a campaign's rows.
var ofCampaign = []struct{ table, where string }{
	{"campaigns", "id = $1"},
	{"nodes", "name IN (SELECT n.node FROM run_nodes n JOIN runs r ON r.id = n.run_id WHERE r.campaign_id = $1)"},
	{"runs", "campaign_id = $1"},
	{"run_nodes", "run_id IN (SELECT id FROM runs WHERE campaign_id = $1)"},
	{"contact_losses", "run_id IN (SELECT id FROM runs WHERE campaign_id = $1)"},
	{"run_signatures", "run_id IN (SELECT id FROM runs WHERE campaign_id = $1)"},
	{"run_commands", "run_id IN (SELECT id FROM runs WHERE campaign_id = $1)"},
	{"attempt_marks", "run_id IN (SELECT id FROM runs WHERE campaign_id = $1)"},
}

// pack writes a folder as a bag has it. lines has a node's journal of a run.
func (o *original) pack(id string, lines func(run, node string) []byte) (folder, *evidence.Evidence) {
	t := o.t
	t.Helper()
	bag := folder(t.TempDir())
	c, err := o.store.Campaign(t.Context(), id)
	require.NoError(t, err)
	bag.write(t, evidence.Plan, c.PlanText)
	index := &evidence.Evidence{Format: evidence.Format, Campaign: id, Version: version, Complete: true}
	for _, x := range ofCampaign {
		list, err := o.conn.Query(t.Context(), `SELECT to_jsonb(t)::text || E'\n' FROM `+x.table+` t WHERE `+x.where, id)
		require.NoError(t, err)
		rows, err := pgx.CollectRows(list, pgx.RowTo[string])
		require.NoError(t, err)
		bag.write(t, path.Join(evidence.Rows, x.table+".jsonl"), []byte(strings.Join(rows, "")))
	}
	runs, err := o.store.CampaignOverview(t.Context(), id)
	require.NoError(t, err)
	for _, r := range runs {
		sheet, err := o.store.RunSheet(t.Context(), r.ID)
		require.NoError(t, err)
		bag.write(t, evidence.SheetFile(r.ID), sheet)
		x := evidence.Run{ID: r.ID, State: r.State, SheetHash: r.SheetHash}
		nodes, err := o.store.RunNodes(t.Context(), r.ID)
		require.NoError(t, err)
		for _, n := range nodes {
			content := lines(r.ID, n.Node)
			bag.write(t, evidence.JournalFile(r.ID, n.Node), content)
			x.Nodes = append(x.Nodes, evidence.Node{Name: n.Node, Role: n.Role, Records: int64(bytes.Count(content, []byte("\n")))})
		}
		index.Runs = append(index.Runs, x)
	}
	o.export(bag, index)
	return bag, index
}

// export writes every file that there is of the campaign.
func (o *original) export(bag folder, index *evidence.Evidence) {
	t := o.t
	t.Helper()
	s := results.New(results.Config{Store: o.store, Catalog: o.catalog})
	there, err := s.ListFormats(t.Context(), connect.NewRequest(&linktrialv1.ListFormatsRequest{Ids: []string{index.Campaign}}))
	require.NoError(t, err)
	for _, f := range there.Msg.Formats {
		if f.OnScreen {
			continue
		}
		var content bytes.Buffer
		name := ""
		err := s.Export(t.Context(), &linktrialv1.ResultsRequest{RunId: index.Campaign, Format: f.Name}, func(m *linktrialv1.ResultsResponse) error {
			name += m.FileName
			content.Write(m.Content)
			return nil
		})
		if code := connect.CodeOf(err); err != nil && (code == connect.CodeNotFound && f.MayBeMissing || code == connect.CodeFailedPrecondition) {
			continue
		}
		require.NoError(t, err, f.Name)
		bag.write(t, path.Join(evidence.Results, name), content.Bytes())
		index.Exports = append(index.Exports, evidence.Export{File: name, Format: f.Name})
	}
	require.Greater(t, len(index.Exports), 10)
}

// of are the lines of journals.
func of(journals ...nodeJournal) func(run, node string) []byte {
	return func(run, node string) (out []byte) {
		for _, j := range journals {
			if j.run == run && j.node == node {
				for _, r := range j.records {
					out = journal.AppendLine(out, r)
				}
			}
		}
		return out
	}
}

// rebuilt makes a bag again, in a database of the tests' server.
func rebuilt(t testing.TB, bag folder, index *evidence.Evidence) (*evidence.Rebuilt, error) {
	t.Helper()
	last := -1.0
	cfg := &Config{Bag: bag, Index: index, Version: version, Progress: func(doing string, share float64) {
		require.NotEmpty(t, doing)
		require.GreaterOrEqual(t, share, last, doing)
		last = share
	}}
	cfg.complete()
	out, err := inDatabase(t.Context(), cfg, t.TempDir(), storetest.URL(t))
	if err == nil {
		require.Equal(t, 1.0, last)
		require.Len(t, out.Files, len(index.Exports))
	}
	return out, err
}

// reachable is a folder through which the user postgres passes.
func reachable(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		require.NoError(t, os.Chmod(at, 0o755))
	}
	return dir
}

// requireSame is that every file is the same, and nothing contradicts the journals.
func requireSame(t testing.TB, bag folder, index *evidence.Evidence) {
	t.Helper()
	out, err := rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Empty(t, out.Problems)
	require.Empty(t, out.Notes)
	for _, f := range out.Files {
		require.True(t, f.Same, "%s: %s%s", f.File, f.Differs, f.NotMade)
		require.Empty(t, f.Differs+f.NotMade)
	}
}

// fileOf is what came of a file.
func fileOf(t testing.TB, out *evidence.Rebuilt, name string) evidence.RebuiltFile {
	t.Helper()
	for _, f := range out.Files {
		if f.File == name {
			return f
		}
	}
	require.Fail(t, "there is no "+name)
	return evidence.RebuiltFile{}
}

// edit changes the records of a type in a journal of a bag, and gives them right checksums.
func (f folder) edit(t testing.TB, run, node string, of journal.Type, change func(body map[string]any)) {
	t.Helper()
	name := evidence.JournalFile(run, node)
	var out []byte
	for line := range strings.Lines(f.text(t, name)) {
		record := []byte(strings.TrimSuffix(line, "\n")[checksum:])
		var r journal.Record
		require.NoError(t, json.Unmarshal(record, &r))
		if r.Type == of {
			var body map[string]any
			dec := json.NewDecoder(bytes.NewReader(r.Body))
			dec.UseNumber()
			require.NoError(t, dec.Decode(&body))
			change(body)
			var err error
			r.Body, err = json.Marshal(body)
			require.NoError(t, err)
			record, err = json.Marshal(r)
			require.NoError(t, err)
		}
		out = journal.AppendLine(out, record)
	}
	f.write(t, name, out)
}
