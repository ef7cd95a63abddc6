package rebuild

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/report/typeset"
	"linktrial/orchestrator/store"
	"linktrial/orchestrator/store/storetest"
)

// The rows, run sheet and journals of the quick start, rehearsed in virtual time.
const (
	quickStart    = "a4rdgnbq"
	quickStartRun = quickStart + "-1"
)

// unpacked is the folder of testdata/quickstart.tar.gz.
func unpacked(t testing.TB) folder {
	t.Helper()
	file, err := os.Open("testdata/quickstart.tar.gz")
	require.NoError(t, err)
	defer file.Close()
	plain, err := gzip.NewReader(file)
	require.NoError(t, err)
	out := folder(t.TempDir())
	for in := tar.NewReader(plain); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if h.Typeflag == tar.TypeReg {
			content, err := io.ReadAll(in)
			require.NoError(t, err)
			out.write(t, h.Name, content)
		}
	}
}

// measuredQuickStart is an orchestrator that has taken the journals of the quick start from
// its nodes.
func measuredQuickStart(t testing.TB) (*original, []nodeJournal) {
	o, from := newOriginal(t), unpacked(t)
	sheet, err := runsheet.Decode([]byte(from.text(t, evidence.SheetFile(quickStartRun))))
	require.NoError(t, err)
	for _, table := range []string{"campaigns", "nodes", "runs", "run_nodes", "run_signatures"} {
		for line := range strings.Lines(from.text(t, path.Join(evidence.Rows, table+".jsonl"))) {
			switch table {
			case "runs":
				o.exec(`INSERT INTO runs OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_record(NULL::runs,
					$1::jsonb || jsonb_build_object('state', 'queued', 'ended_at', NULL, 'sheet', $2::bytea))`, line, []byte(from.text(t, evidence.SheetFile(quickStartRun))))
			case "run_nodes":
				o.exec(`INSERT INTO run_nodes (run_id, role, node) SELECT run_id, role, node FROM jsonb_populate_record(NULL::run_nodes, $1::jsonb)`, line)
			default:
				o.exec(`INSERT INTO `+table+` OVERRIDING SYSTEM VALUE SELECT * FROM jsonb_populate_record(NULL::`+table+`, $1::jsonb)`, line)
			}
		}
	}
	require.NoError(t, o.store.InTx(t.Context(), func(tx store.Conn) error {
		rows := make([]store.InsertTrialsParams, len(sheet.Trials))
		for i, x := range sheet.Trials {
			rows[i] = store.InsertTrialsParams{RunID: quickStartRun, Trial: int32(i), Iteration: int32(x.Iteration), Treatment: x.Treatment}
		}
		_, err := tx.InsertTrials(t.Context(), rows)
		return err
	}))
	var all []nodeJournal
	for _, role := range radio.Roles {
		j := nodeJournal{run: quickStartRun, node: "virtual-" + string(role)}
		for line := range strings.Lines(from.text(t, evidence.JournalFile(quickStartRun, j.node))) {
			j.records = append(j.records, []byte(strings.TrimSuffix(line, "\n")[checksum:]))
		}
		all = append(all, j)
	}
	o.measure(quickStartRun, all...)
	return o, all
}

// differing are the names of files that differ.
func differing(out *evidence.Rebuilt) (names []string) {
	for _, f := range out.Files {
		if f.Differs != "" {
			names = append(names, f.File)
		}
	}
	return names
}

// Every file of a rehearsal follows from its journals byte for byte; a changed value, with a
// right checksum, changes the files that have it, and no others.
func TestQuickStart(t *testing.T) {
	o, journals := measuredQuickStart(t)
	bag, index := o.pack(quickStart, of(journals...))
	requireSame(t, bag, index)

	name := evidence.JournalFile(quickStartRun, "virtual-client")
	honest := bag.text(t, name)
	first := true
	bag.edit(t, quickStartRun, "virtual-client", journal.TypeAttemptEnded, func(body map[string]any) {
		if first {
			result := body["flows"].([]any)[0].(map[string]any)["result"].(map[string]any)
			result["elapsed_ns"] = 1_500_000_000
		}
		first = false
	})
	out, err := rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Empty(t, out.Problems)
	names := differing(out)
	for _, file := range []string{"results.csv", "trials.csv", "trials.parquet", "results.json", "results.md", "results.tex", "results.svg", "report.html"} {
		require.Contains(t, names, file)
	}
	for _, file := range []string{"samples.csv", "samples.parquet", "channels.csv", "telemetry.csv", "readings.csv", "breaches.csv"} {
		require.True(t, fileOf(t, out, file).Same, file)
	}
	require.Contains(t, fileOf(t, out, "results.json").Differs, "follows from the journals")
	require.Contains(t, fileOf(t, out, "trials.csv").Differs, "line 2, which begins with “"+quickStart+",quickstart,"+quickStartRun)
	require.Contains(t, fileOf(t, out, "trials.csv").Differs, "follows “1.5,")
	require.Contains(t, fileOf(t, out, "trials.parquet").Differs, " bytes with the SHA-256 ")

	// Another version may make other files; that is said beside what differs.
	index.Version = "0.1"
	out, err = rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Equal(t, names, differing(out))
	require.Equal(t, []string{"The bag was packed by Linktrial 0.1, and this is test: differences may come from that."}, out.Notes)
	bag.write(t, name, []byte(honest))
	out, err = rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Empty(t, differing(out))
	require.Empty(t, out.Notes)
}

// What of a journal is not as a node wrote it is said, with its file and line, and so is what
// the rows say and the run sheets and journals do not.
func TestContradictions(t *testing.T) {
	o, journals := measuredQuickStart(t)
	bag, index := o.pack(quickStart, of(journals...))
	index.Exports = slices.DeleteFunc(index.Exports, func(x evidence.Export) bool { return x.File != "trials.csv" })
	client := evidence.JournalFile(quickStartRun, "virtual-client")
	lines := func(change func(all []string) []string) func(folder) {
		return func(f folder) {
			all := slices.Collect(strings.Lines(f.text(t, client)))
			f.write(t, client, []byte(strings.Join(change(all), "")))
		}
	}
	for name, c := range map[string]struct {
		change  func(f folder)
		problem string
		same    bool
	}{
		"a changed byte": {lines(func(all []string) []string {
			all[9] = strings.Replace(all[9], `"type"`, `"tyPe"`, 1)
			return all
		}), client + ", line 10: its checksum is not that of its record, so the journal is not taken any further", false},
		"a lost line": {lines(func(all []string) []string {
			i := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, `"type":"attempt-ended"`) })
			return slices.Delete(all, i, i+1)
		}), client + " lacks 1 records between its first and its last one", false},
		"lines in another order": {lines(func(all []string) []string {
			all[4], all[5] = all[5], all[4]
			return all
		}), client + ", line 6: record 5 follows on record 6, so the journal is not taken any further", false},
		"half a line": {lines(func(all []string) []string {
			all[len(all)-1] = all[len(all)-1][:30]
			return all
		}), "so the journal is not taken any further", true},
		"a journal of another run": {func(f folder) {
			f.replace(t, client, quickStartRun, quickStart+"-2")
			record := strings.SplitN(f.text(t, client), "\n", 2)
			f.write(t, client, []byte(string(journal.AppendLine(nil, []byte(record[0][checksum:])))+record[1]))
		}, "record 1 of virtual-client's journal of run " + quickStartRun + " is refused", false},
		"no journal":         {func(f folder) { require.NoError(t, os.Remove(filepath.Join(string(f), client))) }, "the bag has no " + client + ", so nothing follows from this journal", false},
		"a number of trials": {func(f folder) { f.replace(t, "data/store/runs.jsonl", `"trials": 18`, `"trials": 17`) }, "run " + quickStartRun + ": the row's trials is not that of its run sheet", true},
		"an end that was another one": {lines(func(all []string) []string {
			last := strings.Replace(all[len(all)-1][checksum:], `"end":"completed"`, `"end":"stopped"`, 1)
			return append(all[:len(all)-1], string(journal.AppendLine(nil, []byte(strings.TrimSuffix(last, "\n")))))
		}), "run " + quickStartRun + ": the rows say that it completed, and the leading node's journal does not", true},
		"another plan": {func(f folder) { f.replace(t, evidence.Plan, "Quick start", "Slow start") }, evidence.Plan + " is another plan than the row of the campaign has", true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := folder(t.TempDir())
			require.NoError(t, os.CopyFS(string(changed), os.DirFS(string(bag))))
			c.change(changed)
			out, err := rebuilt(t, changed, index)
			require.NoError(t, err)
			require.Contains(t, strings.Join(out.Problems, "\n"), c.problem)
			require.Equal(t, c.same, out.Files[0].Same, out.Files[0].Differs)
		})
	}
}

// The index and the rows name the same runs, with the hashes of their sheets. Many problems
// are not all listed.
func TestRunsOfTheIndex(t *testing.T) {
	o, journals := measuredQuickStart(t)
	bag, index := o.pack(quickStart, of(journals...))
	index.Exports = nil
	index.Runs[0].SheetHash = strings.Repeat("0", 64)
	index.Runs = append(index.Runs, evidence.Run{ID: "other-1", Nodes: []evidence.Node{{Name: "client", Records: 1}}})
	out, err := rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Len(t, out.Problems, 2)
	require.Contains(t, out.Problems[0], "and evidence.json says 000000000000…")
	require.Equal(t, "run other-1: evidence.json names it, and the rows do not have it", out.Problems[1])
	index.Runs = nil
	out, err = rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Contains(t, out.Problems, "run "+quickStartRun+": the rows have it, and evidence.json does not name it")
	w := &work{out: out}
	for range 2 * mostProblems {
		w.problem("run %s", "\x1b[2J")
	}
	require.Len(t, out.Problems, mostProblems+1)
	require.Equal(t, "run \uFFFD[2J", out.Problems[mostProblems-1])
}

// Rows with which nothing can be made are refused with their file and line. What is in them
// reaches no statement.
func TestRowsOfStrangers(t *testing.T) {
	o, journals := measuredQuickStart(t)
	bag, index := o.pack(quickStart, of(journals...))
	index.Exports = slices.DeleteFunc(index.Exports, func(x evidence.Export) bool { return x.File != "results.csv" })
	index.Version = "0.1"
	for name, c := range map[string]struct {
		change func(f folder)
		want   string
	}{
		"a table": {func(f folder) { f.write(t, "data/store/cheats.jsonl", []byte("{}\n")) }, "data/store/cheats.jsonl has rows of a table that this version of Linktrial does not know (the bag was packed by Linktrial 0.1, and this is test)"},
		"a column": {func(f folder) {
			f.replace(t, "data/store/nodes.jsonl", `"name"`, `"name) SELECT 1; DROP TABLE runs; --"`)
		}, `data/store/nodes.jsonl, line 1: its column "name) SELECT 1; DROP TABLE runs; --" is none of the table nodes`},
		"a type": {func(f folder) { f.replace(t, "data/store/nodes.jsonl", `"virtual": true`, `"virtual": "perhaps"`) }, `data/store/nodes.jsonl: a row cannot be stored: invalid input syntax for type boolean`},
		"no row": {func(f folder) { f.write(t, "data/store/nodes.jsonl", []byte("[]\n")) }, "data/store/nodes.jsonl, line 1: it is no row, which is an object in JSON"},
		"no sheet": {func(f folder) {
			require.NoError(t, os.Remove(filepath.Join(string(f), evidence.SheetFile(quickStartRun))))
		}, evidence.SheetFile(quickStartRun)},
		"no campaign": {func(f folder) {
			for _, table := range []string{"campaigns", "runs", "run_nodes", "run_signatures"} {
				f.write(t, "data/store/"+table+".jsonl", nil)
			}
		}, `the rows of the bag have no campaign "` + quickStart + `", of which it is`},
		"a text that is SQL": {func(f folder) {
			f.replace(t, "data/store/nodes.jsonl", `"kernel": "`, `"kernel": "'); DROP TABLE runs; --`)
		}, ""},
		"rows that follow": {func(f folder) { f.write(t, "data/store/flows.jsonl", []byte(`{"run_id": "no-1"}`+"\n")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			changed := folder(t.TempDir())
			require.NoError(t, os.CopyFS(string(changed), os.DirFS(string(bag))))
			c.change(changed)
			out, err := rebuilt(t, changed, index)
			if c.want == "" {
				require.NoError(t, err)
				require.Empty(t, out.Problems)
				require.True(t, out.Files[0].Same)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Of journals that an earlier version stored nothing can be made: that is said at once.
func TestNotKept(t *testing.T) {
	index := &evidence.Evidence{Campaign: quickStart, Runs: []evidence.Run{{ID: quickStartRun, Nodes: []evidence.Node{{Name: "alpha", NotKept: 3}, {Name: "bravo"}}}}}
	_, err := Rebuild(t.Context(), Config{Bag: folder(t.TempDir()), Index: index})
	require.EqualError(t, err, "records of the journal of node alpha of run a4rdgnbq-1 are not in the bag: they were stored by a version of Linktrial that kept no records as they were written")
}

// A person who gives up, and a machine without Typst.
func TestEnds(t *testing.T) {
	o, journals := measuredQuickStart(t)
	bag, index := o.pack(quickStart, of(journals...))
	index.Exports = []evidence.Export{{File: "report.pdf", Format: "report-pdf"}, {File: "samples.csv", Format: "samples-csv"}, {File: "gone.csv", Format: "csv"}}
	bag.write(t, "data/results/report.pdf", []byte("%PDF"))
	t.Setenv(typeset.Variable, t.TempDir())
	out, err := rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Contains(t, fileOf(t, out, "report.pdf").NotMade, "the report as PDF cannot be made on this machine")
	require.Empty(t, fileOf(t, out, "report.pdf").Differs)
	require.Equal(t, "the bag does not have it", fileOf(t, out, "gone.csv").NotMade)
	require.True(t, fileOf(t, out, "samples.csv").Same)

	t.Setenv("TMPDIR", reachable(t))
	out, err = Rebuild(t.Context(), Config{Bag: bag, Index: index, Version: version})
	dir := reachable(t)
	require.NoError(t, err)
	require.True(t, fileOf(t, out, "samples.csv").Same)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Rebuild(ctx, Config{Bag: bag, Index: index, Dir: dir, Progress: func(doing string, _ float64) {
		if strings.HasPrefix(doing, "reading the journal") {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A run whose samples were deleted before it was packed, and one of whose files was exported
// before that.
func TestDeletedSamples(t *testing.T) {
	o, journals := measuredQuickStart(t)
	bag, index := o.pack(quickStart, of(journals...))
	for i := range index.Runs[0].Nodes {
		n := &index.Runs[0].Nodes[i]
		n.SamplesDeleted = true
		name := evidence.JournalFile(quickStartRun, n.Name)
		var kept bytes.Buffer
		for line := range strings.Lines(bag.text(t, name)) {
			if !strings.Contains(line, `"type":"samples"`) {
				kept.WriteString(line)
			}
		}
		bag.write(t, name, kept.Bytes())
	}
	out, err := rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Empty(t, out.Problems)
	require.Empty(t, differing(out))
	for _, name := range []string{"samples.csv", "samples.parquet", "sequence.svg"} {
		require.Equal(t, "it is made of samples, and those of run "+quickStartRun+" were deleted before the bag was packed", fileOf(t, out, name).NotMade)
	}
	require.Equal(t, "it draws samples, and those of run "+quickStartRun+" were deleted before the bag was packed", fileOf(t, out, "report.html").NotMade)
	for _, name := range []string{"results.csv", "results.json", "delivery.csv"} {
		require.True(t, fileOf(t, out, name).Same, name)
	}

	// Of such a run, and of no other one, the rows give the common windows: what was made of
	// samples does not follow any more.
	bag.write(t, "data/store/attempts.jsonl", []byte(`{"run_id": "`+quickStartRun+`", "trial": 0, "attempt": 1, "common_window": {"unknown": "too few samples"}, "verdict": "failed"}`+"\n"))
	out, err = rebuilt(t, bag, index)
	require.NoError(t, err)
	require.Contains(t, fileOf(t, out, "trials.csv").Differs, "from the journals follows “invalid,1,false,invalid,window-unknown,too few samples")
	for i := range index.Runs[0].Nodes {
		index.Runs[0].Nodes[i].SamplesDeleted = false
	}
	out, err = rebuilt(t, bag, index)
	require.NoError(t, err)
	require.True(t, fileOf(t, out, "trials.csv").Same)
	require.Contains(t, strings.Join(out.Problems, "\n"), "records between its first and its last one")
}

// judgedSheet is of three trials, with in-band control and a rule of validity.
func judgedSheet() *runsheet.Sheet {
	s := storetest.Sheet(3)
	s.Control, s.Valid = runsheet.ControlInBand, &runsheet.Valid{Interfering: &runsheet.Interfering{Share: 0.05}}
	return s
}

// judgedJournals are of a run whose first trial met control traffic and whose third one met
// other traffic; whether the second one did was not watched. The trials begin 10, 30 and
// 50 s after the run.
func judgedJournals(run string, sheet *runsheet.Sheet) []nodeJournal {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	var all []nodeJournal
	for _, role := range radio.Roles {
		j := storetest.NewJournal(run, role)
		j.Begin(sheet)
		if role == radio.RoleServer {
			j.Listen(sheet)
		}
		for i := range sheet.Trials {
			if role == radio.RoleServer {
				j.Received(sheet.Trials[i].Treatment, i, 1)
			}
			if role != radio.RoleClient {
				continue
			}
			j.Pass(10 * time.Second)
			j.Start(sheet, i, 1)
			j.Samples(i, 1, 4)
			j.End(sheet, i, 1, journal.Succeeded)
			j.EndTrial(i, 1, journal.Succeeded)
			j.Pass(10 * time.Second)
		}
		count := func() {
			for _, c := range []struct {
				from, to float64
				packets  int64
			}{{0, 10.5, 0}, {10.5, 10.7, 2}, {10.7, 40, 0}, {40, 60, 0}, {60, 80, 0}} {
				if role != radio.RoleServer {
					c.packets = 0
				}
				if role != radio.RoleClient {
					j.Add(journal.TypeControlCounted, journal.ControlCounted{Since: at(c.from), Until: at(c.to), ControlTraffic: journal.ControlTraffic{Packets: c.packets, Bytes: 52 * c.packets}})
				}
			}
		}
		watch := func() {
			for _, span := range [][2]float64{{0, 25}, {25, 45}, {45, 80}} {
				w := journal.Watched{Since: at(span[0]), Until: at(span[1])}
				if role == radio.RoleRelay && span[0] == 25 {
					continue
				}
				if role == radio.RoleServer && span[0] == 45 {
					w.Other = &journal.OtherTraffic{Packets: 3, Bytes: []journal.BytesAt{{After: 5700 * time.Millisecond, Bytes: 600}}, Most: []journal.Conversation{{What: "UDP 10.77.0.1:7 → 10.77.0.3:9", Bytes: 600}}}
				}
				j.Add(journal.TypeWatched, w)
			}
		}
		// The server's last count comes after the last trial has ended.
		if role == radio.RoleServer {
			watch()
			count()
		} else {
			count()
			watch()
		}
		j.Finish(journal.RunCompleted, "")
		all = append(all, own(j))
	}
	return all
}

// What Linktrial decides from the journals of all nodes follows from them again, whenever a
// person marked an attempt; marks in the rows that do not follow, and those that lack there,
// are named.
func TestMarks(t *testing.T) {
	o := newOriginal(t)
	sheet := judgedSheet()
	run := storetest.AddRun(t, o.store, "judged", sheet)
	journals := judgedJournals(run, sheet)
	o.after = func(round int) {
		if round == 10 { // the second trial's attempt has ended, and the trial has not
			require.NoError(t, o.engine.MarkAttempt(t.Context(), run, campaign.Mark{Trial: 1, Attempt: 1, Invalid: true, Reason: "the antenna fell", By: "ada"}))
		}
	}
	o.measure(run, journals...)
	recorded, err := readMarks(t.Context(), o.conn)
	require.NoError(t, err)
	require.Len(t, recorded, 3, "%v", recorded)
	bag, index := o.pack("judged", of(journals...))
	require.Contains(t, bag.text(t, "data/results/results.json"), "rule interfering: the relay was not watched")
	requireSame(t, bag, index)

	const rows = "data/store/attempt_marks.jsonl"
	honest := slices.Collect(strings.Lines(bag.text(t, rows)))
	index.Exports = slices.DeleteFunc(index.Exports, func(x evidence.Export) bool { return x.File != "trials.csv" })
	for name, c := range map[string]struct {
		change  func(all []string) []string
		problem string
		same    bool
	}{
		"a mark that lacks": {func(all []string) []string {
			return slices.DeleteFunc(all, func(s string) bool { return strings.Contains(s, "control packets") })
		}, "run judged-1, trial 0, attempt 1: the rows lack a mark of Linktrial's that follows from the journals, because “2 control packets with 104 B passed at the server", false},
		"a mark that does not follow": {func(all []string) []string {
			i := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "the antenna fell") })
			all[i] = strings.Replace(all[i], `"ada"`, `"linktrial"`, 1)
			return all
		}, "run judged-1, trial 1, attempt 1: the rows have a mark of Linktrial's that does not follow from the journals, because “the antenna fell”", false},
		"another reason": {func(all []string) []string {
			i := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "2 control packets") })
			all[i] = strings.Replace(all[i], "2 control packets", "7 control packets", 1)
			return all
		}, "run judged-1, trial 0, attempt 1: the rows have a mark of Linktrial's because “7 control packets", false},
		"taken back by nobody": {func(all []string) []string {
			i := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "control packets") })
			return append(all, strings.NewReplacer(`"invalid": true`, `"invalid": false`, `"id": "`, `"id": "x`, `"ordinal": `, `"ordinal": 9`).Replace(all[i]))
		}, "takes another one back, which Linktrial never does", false},
		"a person's mark is gone": {func(all []string) []string {
			return slices.DeleteFunc(all, func(s string) bool { return strings.Contains(s, "antenna") })
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			bag.write(t, rows, []byte(strings.Join(c.change(slices.Clone(honest)), "")))
			out, err := rebuilt(t, bag, index)
			require.NoError(t, err)
			require.Contains(t, strings.Join(out.Problems, "\n"), c.problem)
			if c.problem == "" {
				require.Empty(t, out.Problems)
			}
			require.Equal(t, c.same, out.Files[0].Same)
		})
	}
}

// A run that is under way: nothing is decided of it that the orchestrator does not decide yet.
func TestUnderWay(t *testing.T) {
	o := newOriginal(t)
	sheet := judgedSheet()
	run := storetest.AddRun(t, o.store, "underway", sheet)
	journals := judgedJournals(run, sheet)
	for i := range journals {
		j := &journals[i]
		j.records = j.records[:len(j.records)-1]
		if j.node == string(radio.RoleRelay) {
			j.records = j.records[:len(j.records)-1] // what was watched from the second trial on
		}
	}
	o.deliver(run, journals...)
	require.Eventually(t, func() bool { // of the first trial it is known what the relay watched
		var n int
		require.NoError(t, o.conn.QueryRow(t.Context(), `SELECT count(undecided) + count(control) FROM attempts`).Scan(&n))
		return n == 1+3
	}, 20*time.Second, 20*time.Millisecond)
	o.engine.Stop()
	recorded, err := readMarks(t.Context(), o.conn)
	require.NoError(t, err)
	require.Len(t, recorded, 1)
	require.Contains(t, recorded[0].reason, "control packets")
	bag, index := o.pack("underway", of(journals...))
	require.Equal(t, string(campaign.Running), index.Runs[0].State)
	requireSame(t, bag, index)
}

// An aborted run, some of whose trials never began.
func TestAborted(t *testing.T) {
	o := newOriginal(t)
	sheet := storetest.Sheet(4)
	run := storetest.AddRun(t, o.store, "aborted", sheet)
	client, server, relay := storetest.NewJournal(run, radio.RoleClient), storetest.NewJournal(run, radio.RoleServer), storetest.NewJournal(run, radio.RoleRelay)
	for _, j := range []*storetest.Journal{client, server, relay} {
		j.Begin(sheet)
	}
	server.Listen(sheet)
	client.Start(sheet, 0, 1)
	client.Samples(0, 1, 5)
	client.End(sheet, 0, 1, journal.Succeeded)
	client.EndTrial(0, 1, journal.Succeeded)
	client.Start(sheet, 1, 1)
	client.End(sheet, 1, 1, journal.Aborted)
	server.Received(sheet.Trials[0].Treatment, 0, 1)
	for _, j := range []*storetest.Journal{client, server, relay} {
		j.Finish(journal.RunAborted, "it rains")
	}
	journals := []nodeJournal{own(client), own(server), own(relay)}
	o.after = func(round int) {
		if round == 1 { // before a journal has its end, with which the run could end
			require.NoError(t, o.engine.Abort(t.Context(), "aborted", "it rains"))
		}
	}
	o.measure(run, journals...)
	bag, index := o.pack("aborted", of(journals...))
	require.Equal(t, string(campaign.Aborted), index.Runs[0].State)
	requireSame(t, bag, index)
}
