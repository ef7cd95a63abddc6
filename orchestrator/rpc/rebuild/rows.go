package rebuild

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/store"
)

// table is one whose rows are taken from a bag.
type table struct {
	name string
	// only are the columns that are taken; nil: all but those that computed gives.
	only []string
	// computed gives columns that follow from something else than the row; nil: none do.
	computed func(r *rows, row map[string]json.RawMessage) error
}

// Tables are taken in the order in which they refer to each other. What the nodes recorded
// follows from journals, and trials follow from the run sheets.
var (
	beforeTrials = []table{
		{name: "campaigns", computed: (*rows).campaign},
		{name: "nodes"},
		{name: "runs", computed: (*rows).run},
		{name: "run_nodes", only: []string{"run_id", "role", "node"}},
		{name: "contact_losses"},
		{name: "run_signatures"},
		{name: "report_words"},
	}
	afterTrials = []table{{name: "run_commands"}}
	// Marks refer to attempts, which follow from journals.
	afterJournals = []table{{name: "attempt_marks"}}
)

const (
	longestRow = 64 << 20 // bytes
	longestDoc = 64 << 20 // bytes of a plan or a run sheet
	batchBytes = 4 << 20  // of rows in one statement
)

// rows are those of a bag, on their way into a store.
type rows struct {
	bag       Bag
	conn      *pgx.Conn
	problem   func(format string, args ...any)
	columns   map[string][]string // of the schema, by table
	campaigns map[string]bool     // that there are
	sheets    map[string]*runsheet.Sheet
	hashes    map[string]string // of sheets
	published bool              // the plan has published values
}

func newRows(b Bag, conn *pgx.Conn, problem func(format string, args ...any)) *rows {
	return &rows{bag: b, conn: conn, problem: problem, columns: map[string][]string{}, campaigns: map[string]bool{}, sheets: map[string]*runsheet.Sheet{}, hashes: map[string]string{}}
}

// ids are those of the runs, sorted.
func (r *rows) ids() []string { return slices.Sorted(maps.Keys(r.sheets)) }

// readSchema reads which columns can be given.
func (r *rows) readSchema(ctx context.Context) error {
	list, err := r.conn.Query(ctx, `SELECT table_name::text, column_name::text FROM information_schema.columns
		WHERE table_schema = current_schema() AND is_generated = 'NEVER' ORDER BY table_name, ordinal_position`)
	if err != nil {
		return err
	}
	var of, column string
	_, err = pgx.ForEachRow(list, []any{&of, &column}, func() error {
		r.columns[of] = append(r.columns[of], column)
		return nil
	})
	return err
}

// checkTables refuses files of tables that this version does not know: what is in them may
// matter. Those of tables that follow from something else are passed over.
func (r *rows) checkTables() error {
	for _, name := range below(r.bag, evidence.Rows) {
		of, ok := strings.CutSuffix(path.Base(name), ".jsonl")
		if ok = ok && path.Dir(name) == evidence.Rows; !ok || r.columns[of] == nil {
			return fmt.Errorf("%s has rows of a table that this version of Linktrial does not know", name)
		}
	}
	return nil
}

// store stores the rows of tables, as far as the bag has them.
func (r *rows) store(ctx context.Context, tables []table) error {
	for i := range tables {
		if err := r.storeTable(ctx, &tables[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *rows) storeTable(ctx context.Context, t *table) error {
	var batch []json.RawMessage
	var given []string // the columns of the batch's rows
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := r.insert(ctx, t, given, batch)
		batch, size = batch[:0], 0
		return err
	}
	name := path.Join(evidence.Rows, t.name+".jsonl")
	if !has(r.bag, name) {
		return nil
	}
	err := eachLine(r.bag, name, longestRow, func(_ int, line []byte, _ bool) error {
		row, columns, err := r.row(t, line)
		if err != nil {
			return err
		}
		if !slices.Equal(columns, given) || size > batchBytes {
			if err := flush(); err != nil {
				return err
			}
			given = columns
		}
		batch, size = append(batch, row), size+len(row)
		return nil
	})
	if err == nil {
		if err = flush(); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}
	return err
}

// row is a row as it is stored, with the columns that it gives, in the order of the schema.
func (r *rows) row(t *table, line []byte) (json.RawMessage, []string, error) {
	var row map[string]json.RawMessage
	if err := json.Unmarshal(line, &row); err != nil || row == nil {
		return nil, nil, errors.New("it is no row, which is an object in JSON")
	}
	for _, column := range slices.Sorted(maps.Keys(row)) {
		if !slices.Contains(r.columns[t.name], column) {
			return nil, nil, fmt.Errorf("its column %.100q is none of the table %s in this version of Linktrial", column, t.name)
		}
		if t.only != nil && !slices.Contains(t.only, column) {
			delete(row, column)
		}
	}
	if t.computed != nil {
		if err := t.computed(r, row); err != nil {
			return nil, nil, err
		}
	}
	columns := slices.DeleteFunc(slices.Clone(r.columns[t.name]), func(c string) bool { return row[c] == nil })
	b, err := json.Marshal(row)
	return b, columns, err
}

// insert stores rows. The columns are of the schema.
func (r *rows) insert(ctx context.Context, t *table, columns []string, batch []json.RawMessage) error {
	all, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = pgx.Identifier{c}.Sanitize()
	}
	list, of := strings.Join(names, ", "), pgx.Identifier{t.name}.Sanitize()
	_, err = r.conn.Exec(ctx, `INSERT INTO `+of+` (`+list+`) OVERRIDING SYSTEM VALUE SELECT `+list+` FROM jsonb_populate_recordset(NULL::`+of+`, $1::jsonb)`, string(all))
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return fmt.Errorf("a row cannot be stored: %s", printable(refused.Message))
	}
	return err
}

// text is a column of a row that is a text.
func text(row map[string]json.RawMessage, column string) (out string) {
	_ = json.Unmarshal(row[column], &out) // else empty, which is no identity
	return out
}

// set puts a value in the place of a row's own, and reports whether that was another one.
func set(row map[string]json.RawMessage, column string, value any) (differed bool) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return false // texts, numbers and lists of texts only
	}
	old, stated := row[column]
	var was, is any
	differed = stated && (json.Unmarshal(old, &was) != nil || json.Unmarshal(encoded, &is) != nil || fmt.Sprint(was) != fmt.Sprint(is))
	row[column] = encoded
	return differed
}

// bytea is how a row has bytes.
func bytea(b []byte) string { return `\x` + hex.EncodeToString(b) }

// campaign takes the plan's text from its file.
func (r *rows) campaign(row map[string]json.RawMessage) error {
	plan, err := read(r.bag, evidence.Plan, longestDoc)
	if err != nil {
		return err
	}
	r.campaigns[text(row, "id")] = true
	r.published = strings.Contains(string(plan), "published:")
	if set(row, "plan_text", bytea(plan)) {
		r.problem("%s is another plan than the row of the campaign has", evidence.Plan)
	}
	if set(row, "plan_hash", runsheet.Hash(plan)) {
		r.problem("the hash of the plan in the row of the campaign is not that of %s", evidence.Plan)
	}
	return nil
}

// run takes from the run sheet what follows from it.
func (r *rows) run(row map[string]json.RawMessage) error {
	id := text(row, "id")
	encoded, err := read(r.bag, evidence.SheetFile(id), longestDoc)
	if err != nil {
		return err
	}
	sheet, err := runsheet.Decode(encoded)
	if err != nil {
		return fmt.Errorf("%s: %w", evidence.SheetFile(id), err)
	}
	of := store.NewRun(id, text(row, "campaign_id"), sheet, encoded, nil)
	r.sheets[id], r.hashes[id] = sheet, of.SheetHash
	for column, value := range map[string]any{
		"cell": of.Cell, "sheet": bytea(encoded), "sheet_hash": of.SheetHash, "radio": of.Radio, "topology": of.Topology, "size_bytes": of.SizeBytes,
		"trials": of.Trials, "treatment_labels": of.TreatmentLabels, "swept": of.Swept,
	} {
		if set(row, column, value) {
			r.problem("run %s: the row's %s is not that of its run sheet", id, column)
		}
	}
	if row["estimated_seconds"] == nil { // of no result
		set(row, "estimated_seconds", make([]float64, len(sheet.Trials)))
	}
	return nil
}

// trials stores the trials of every run, which follow from its sheet.
func (r *rows) trials(ctx context.Context, st *store.Store) error {
	for _, id := range r.ids() {
		sheet := r.sheets[id]
		list := make([]store.InsertTrialsParams, len(sheet.Trials))
		for i, t := range sheet.Trials {
			list[i] = store.InsertTrialsParams{RunID: id, Trial: int32(i), Iteration: int32(t.Iteration), Treatment: t.Treatment}
		}
		if _, err := st.InsertTrials(ctx, list); err != nil {
			return fmt.Errorf("trials of run %s: %w", id, err)
		}
	}
	return nil
}

// windows takes the common windows of runs whose samples were deleted, of which they were
// made; those of others follow from the samples.
func (r *rows) windows(ctx context.Context, runs []string) error {
	const name = evidence.Rows + "/attempts.jsonl"
	if len(runs) == 0 || !has(r.bag, name) {
		return nil
	}
	return eachLine(r.bag, name, longestRow, func(_ int, line []byte, _ bool) error {
		_, err := r.conn.Exec(ctx, `UPDATE attempts a SET common_window = x.common_window FROM jsonb_populate_record(NULL::attempts, $1::jsonb) x
			WHERE a.run_id = x.run_id AND a.trial = x.trial AND a.attempt = x.attempt AND a.run_id = ANY ($2)`, string(line), runs)
		return err
	})
}
