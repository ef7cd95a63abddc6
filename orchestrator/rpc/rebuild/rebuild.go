package rebuild

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"linktrial/internal/scratch"
	"linktrial/orchestrator/catalog"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/ingest"
	"linktrial/orchestrator/postgres"
	"linktrial/orchestrator/store"
)

// Config is what is made again, and where.
type Config struct {
	Bag   Bag
	Index *evidence.Evidence
	// Dir is a folder in which the private database gets a folder of its own, which is removed
	// at the end. Where this process is root's, the user of PostgreSQL must reach it. Empty: the
	// folder for temporary files.
	Dir string
	// Version is this program's.
	Version string
	// Progress hears what is done now, and which share is done, 0 to 1; it can be nil.
	Progress func(doing string, share float64)
	Logger   *slog.Logger
}

// complete puts defaults in the place of what is not given.
func (c *Config) complete() {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(string, float64) {}
	}
}

// folder makes the folder of the database.
func (c *Config) folder() (dir string, remove func() error, err error) {
	const prefix = "linktrial-rebuild-"
	if c.Dir == "" {
		f, err := scratch.New(prefix)
		if err != nil {
			return "", nil, err
		}
		return f.Path, f.Remove, nil
	}
	dir, err = os.MkdirTemp(c.Dir, prefix)
	return dir, func() error { return os.RemoveAll(dir) }, err
}

// Shares of the work at whose beginning they are.
const (
	shareRows, shareJournals, shareMarks, shareExports = 0.05, 0.08, 0.6, 0.65
)

// stopWithin bounds the end of the private database.
const stopWithin = 30 * time.Second

// mostProblems bounds the list of them: a bag with more is none.
const mostProblems = 200

// Rebuild makes the exported files of a bag again and says what differs. Its error is that this
// could not be done: one of this machine, or rows with which nothing can be made.
func Rebuild(ctx context.Context, cfg Config) (out *evidence.Rebuilt, err error) {
	cfg.complete()
	if err := kept(cfg.Index); err != nil {
		return nil, err
	}
	dir, remove, err := cfg.folder()
	if err != nil {
		return nil, fmt.Errorf("folder for the database: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	// The user postgres passes through it; the database itself only that user can enter.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	cfg.Progress("starting a database", 0)
	db, err := postgres.Start(ctx, postgres.Config{DataDir: dir, Logger: cfg.Logger})
	if err != nil {
		return nil, err
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		err = errors.Join(err, db.Stop(stop))
	}()
	return inDatabase(ctx, &cfg, dir, db.URL()+"&synchronous_commit=off") // what is lost with the machine is made again
}

// kept returns an error where the bag lacks records of which results were made.
func kept(index *evidence.Evidence) (err error) {
	var lacking evidence.JournalsByReason
	for i := range index.Runs {
		for _, n := range index.Runs[i].Nodes {
			if n.NotKept > 0 {
				lacking.Add(index.Runs[i].ID, n.Name, "")
			}
		}
	}
	lacking.Each(func(journals string, _ bool, _ string) {
		err = fmt.Errorf("records of %s are not in the bag: they were stored by a version of Linktrial that kept no records as they were written", journals)
	})
	return err
}

// inDatabase is [Rebuild] in an empty database. dir is for files that matter only meanwhile.
func inDatabase(ctx context.Context, cfg *Config, dir, at string) (*evidence.Rebuilt, error) {
	st, err := store.Open(ctx, at, cfg.Logger)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	conn, err := pgx.Connect(ctx, at)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	w := &work{cfg: cfg, dir: dir, st: st, conn: conn, out: &evidence.Rebuilt{}}
	if err := w.all(ctx); err != nil {
		return nil, err
	}
	return w.out, nil
}

// work is one rebuild.
type work struct {
	cfg  *Config
	dir  string
	st   *store.Store
	conn *pgx.Conn
	out  *evidence.Rebuilt
	rows *rows
}

func (w *work) problem(format string, args ...any) {
	switch n := len(w.out.Problems); {
	case n == mostProblems:
		w.out.Problems = append(w.out.Problems, "There are more problems, which are not listed.")
	case n < mostProblems:
		w.out.Problems = append(w.out.Problems, printable(fmt.Sprintf(format, args...)))
	}
}

func (w *work) all(ctx context.Context) error {
	for _, step := range []func(context.Context) error{w.storeRows, w.deliver, w.judge, w.makeFiles} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// storeRows stores what the journals refer to.
func (w *work) storeRows(ctx context.Context) error {
	w.cfg.Progress("storing rows", shareRows)
	w.rows = newRows(w.cfg.Bag, w.conn, w.problem)
	if err := w.rows.readSchema(ctx); err != nil {
		return err
	}
	err := w.rows.checkTables()
	if err == nil {
		err = w.rows.store(ctx, beforeTrials)
	}
	if err == nil {
		err = w.rows.trials(ctx, w.st)
	}
	if err == nil {
		err = w.rows.store(ctx, afterTrials)
	}
	if err != nil {
		return w.explained(err)
	}
	if !w.rows.campaigns[w.cfg.Index.Campaign] {
		return fmt.Errorf("the rows of the bag have no campaign %q, of which it is", w.cfg.Index.Campaign)
	}
	w.checkRuns()
	return nil
}

// explained adds to an error of rows that the bag was packed by another version.
func (w *work) explained(err error) error {
	if v := w.cfg.Index.Version; v != w.cfg.Version {
		return fmt.Errorf("%w (the bag was packed by Linktrial %s, and this is %s)", err, v, w.cfg.Version)
	}
	return err
}

// checkRuns holds the runs of the rows against those of the index.
func (w *work) checkRuns() {
	named := map[string]bool{}
	for i := range w.cfg.Index.Runs {
		x := &w.cfg.Index.Runs[i]
		named[x.ID] = true
		if w.rows.sheets[x.ID] == nil {
			w.problem("run %s: evidence.json names it, and the rows do not have it", x.ID)
		} else if hash := w.rows.hashes[x.ID]; hash != x.SheetHash {
			w.problem("run %s: its run sheet has the hash %.12s…, and evidence.json says %.12s…", x.ID, hash, x.SheetHash)
		}
	}
	for _, id := range w.rows.ids() {
		if !named[id] {
			w.problem("run %s: the rows have it, and evidence.json does not name it", id)
		}
	}
}

// deliver delivers the journals of all nodes.
func (w *work) deliver(ctx context.Context) error {
	total, done := int64(0), int64(0)
	for _, r := range w.cfg.Index.Runs {
		for _, n := range r.Nodes {
			total += max(n.Records, 0)
		}
	}
	in := ingest.New(ingest.Config{Store: w.st, Logger: w.cfg.Logger})
	var deleted []string
	for i := range w.cfg.Index.Runs {
		r := &w.cfg.Index.Runs[i]
		if w.rows.sheets[r.ID] == nil {
			continue
		}
		for k := range r.Nodes {
			if r.Nodes[k].SamplesDeleted && !slices.Contains(deleted, r.ID) {
				deleted = append(deleted, r.ID)
			}
			d := &delivering{ingest: in, conn: w.conn, run: r.ID, node: &r.Nodes[k], told: func(records int64) {
				done += records
				share := min(1, float64(done)/float64(max(1, total)))
				w.cfg.Progress(fmt.Sprintf("reading the journal of %s in run %s", r.Nodes[k].Name, r.ID), shareJournals+share*(shareMarks-shareJournals))
			}}
			if err := d.journal(ctx, w.cfg.Bag, w.problem); err != nil {
				return err
			}
		}
	}
	if err := w.checkEnds(ctx); err != nil {
		return err
	}
	return w.rows.windows(ctx, deleted)
}

// checkEnds holds runs that completed, as the rows say, against the leading nodes' journals.
// Others can have ended for the orchestrator and not for a node without contact.
func (w *work) checkEnds(ctx context.Context) error {
	list, err := w.conn.Query(ctx, `SELECT r.id FROM runs r JOIN run_nodes n ON n.run_id = r.id AND n.role = 'client'
		WHERE r.state = 'completed' AND n.ended IS DISTINCT FROM 'completed' ORDER BY r.ordinal`)
	if err != nil {
		return err
	}
	runs, err := pgx.CollectRows(list, pgx.RowTo[string])
	for _, id := range runs {
		w.problem("run %s: the rows say that it completed, and the leading node's journal does not", id)
	}
	return err
}

// judge decides again what needs the journals of all nodes, and stores the recorded marks.
func (w *work) judge(ctx context.Context) error {
	w.cfg.Progress("deciding about attempts", shareMarks)
	follow, err := judge(ctx, w.st, w.conn, w.cfg.Logger, w.rows.ids())
	if err != nil {
		return err
	}
	if err := w.rows.store(ctx, afterJournals); err != nil {
		return w.explained(err)
	}
	recorded, err := readMarks(ctx, w.conn)
	if err != nil {
		return err
	}
	holdMarks(follow, recorded, w.problem)
	return nil
}

// makeFiles makes the exported files again.
func (w *work) makeFiles(ctx context.Context) error {
	index := w.cfg.Index
	all, err := w.catalog()
	if err != nil {
		return err
	}
	e := newExports(w.cfg.Bag, index, w.st, all, w.cfg.Logger, w.dir)
	differ := false
	for i := range index.Exports {
		x := &index.Exports[i]
		w.cfg.Progress("making "+x.File+" again", shareExports+(1-shareExports)*float64(i)/float64(len(index.Exports)))
		f, err := e.again(ctx, x)
		if err != nil {
			return err
		}
		w.out.Files = append(w.out.Files, f)
		differ = differ || f.Differs != ""
	}
	if differ && index.Version != w.cfg.Version {
		w.out.Notes = append(w.out.Notes, fmt.Sprintf("The bag was packed by Linktrial %s, and this is %s: differences may come from that.", index.Version, w.cfg.Version))
	}
	w.cfg.Progress("comparing is done", 1)
	return nil
}

// catalog is what the plan may name, which only a plan with published values needs.
func (w *work) catalog() (*catalog.Catalog, error) {
	if !w.rows.published {
		return nil, nil
	}
	all, err := loadCatalog(w.cfg.Bag, w.dir)
	if err == nil {
		return all, nil
	}
	w.problem("%v", err)
	return catalog.Load(catalog.Config{})
}
