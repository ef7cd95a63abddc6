package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"linktrial/executor"
	"linktrial/internal/atomicfile"
	"linktrial/internal/inputfile"
)

// DesiredState is how far a run may go, as the orchestrator last said.
type DesiredState string

// rank orders desired states: they only ever go forward.
var rank = map[DesiredState]int{desiredPrepare: 0, desiredRun: 1, desiredFinish: 2, desiredAbort: 3}

const (
	desiredPrepare DesiredState = "prepare"
	desiredRun     DesiredState = "run"
	desiredFinish  DesiredState = "finish"
	desiredAbort   DesiredState = "abort"
)

// note is what the state folder has of a run beside sheet and journal. The keys
// wish and orders are those of the first version, so that a run that an older
// agent began is resumed.
type note struct {
	Run       string       `json:"run"`
	SheetHash string       `json:"sheet_hash"`
	KeyID     string       `json:"key_id,omitempty"`    // that signed the sheet
	Signature []byte       `json:"signature,omitempty"` // of the sheet
	Desired   DesiredState `json:"wish"`
	Reason    string       `json:"reason,omitempty"` // of an abort
	Taken     time.Time    `json:"taken"`
	// Assignment is the run's as it was accepted, encoded, with its signature: an agent
	// that resumes the run verifies it again.
	Assignment          []byte `json:"assignment,omitempty"`
	AssignmentKeyID     string `json:"assignment_key_id,omitempty"`
	AssignmentSignature []byte `json:"assignment_signature,omitempty"`
	// Commands of people to the leading agent, oldest first.
	Commands []executor.Command `json:"orders,omitempty"`
	// Begun is set when the run's journal has a record: from then on a missing one is lost.
	Begun bool `json:"begun,omitempty"`
	// Stored is set when the run has ended and the orchestrator has all of it.
	Stored time.Time `json:"stored,omitzero"`
}

const (
	noteFile  = "assignment.json"
	sheetFile = "sheet.json"
)

// How long runs are kept after the orchestrator has stored them.
const (
	keepFor = 7 * 24 * time.Hour
	keepMax = 50
)

// runForm makes sure that a run's identity is a plain file name.
var runForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

func (n *note) write(dir string) error {
	b, err := json.Marshal(n)
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, noteFile), append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("note of run %s: %w", n.Run, err)
	}
	return nil
}

// maxNote bounds a note, in bytes; commands of people are what makes one long.
const maxNote = 1 << 20

// maxSheet bounds a run sheet, in bytes: more than one answer of the orchestrator holds.
const maxSheet = 64 << 20

// badFile is a file of the state folder that cannot be read.
type badFile struct {
	path string
	err  error // names the file
}

// readNotes reads the runs of a state folder, oldest first, and returns the files that
// cannot be read beside them. A folder without a note is one whose first note was
// never written: nothing happened in it.
func readNotes(runs string) (out []note, bad []badFile, err error) {
	entries, err := os.ReadDir(runs)
	if err != nil {
		return nil, nil, fmt.Errorf("state folder: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(runs, e.Name())
		if !runForm.MatchString(e.Name()) {
			continue // set aside, or not ours
		}
		if !e.IsDir() {
			bad = append(bad, badFile{path, fmt.Errorf("%s is %s, expected a folder", path, inputfile.Kind(e.Type()))})
			continue
		}
		path = filepath.Join(path, noteFile)
		b, err := inputfile.Read(path, maxNote)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		var n note
		if err == nil {
			if n, err = parseNote(b); err == nil && n.Run != e.Name() {
				err = fmt.Errorf("it is of run %q", n.Run)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
		}
		if err != nil {
			bad = append(bad, badFile{path, err})
			continue
		}
		out = append(out, n)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Taken.Before(out[j].Taken) })
	return out, bad, nil
}

// parseNote decodes a note and checks what the agent relies on.
func parseNote(b []byte) (note, error) {
	var n note
	if err := json.Unmarshal(b, &n); err != nil {
		return note{}, err
	}
	if !runForm.MatchString(n.Run) {
		return note{}, fmt.Errorf("run %.140q, expected letters, digits, hyphens and underscores", n.Run)
	}
	if _, ok := rank[n.Desired]; !ok {
		return note{}, fmt.Errorf("desired state %.40q, expected prepare, run, finish or abort", n.Desired)
	}
	return n, nil
}

// prune removes runs that were stored long ago, or are too many, and remembers that
// they have ended. Without a time, none was stored long ago.
func prune(runs string, notes []note, now time.Time) error {
	stored := 0
	var gone []string
	for i := len(notes) - 1; i >= 0; i-- {
		n := notes[i]
		if n.Stored.IsZero() {
			continue
		}
		if stored++; stored <= keepMax && now.Sub(n.Stored) < keepFor {
			continue
		}
		gone = append(gone, n.Run)
	}
	if len(gone) == 0 {
		return nil
	}
	if err := rememberFinished(runs, gone); err != nil {
		return err
	}
	for _, run := range gone {
		if err := os.RemoveAll(filepath.Join(runs, run)); err != nil {
			return fmt.Errorf("remove run %s: %w", run, err)
		}
	}
	return nil
}

// finishedFile, in the folder of runs, has the identities of runs that were removed
// there, a line each, oldest first: no assignment makes the node begin one again.
const finishedFile = ".finished"

// finishedMax bounds the list. Older runs are kept out by the challenge and the expiry
// of assignments alone.
const finishedMax = 2000

// maxFinished is longer than the file gets, in bytes.
const maxFinished = finishedMax * 130

// readFinished returns the list; one that cannot be read is as none.
func readFinished(runs string) []string {
	b, err := inputfile.Read(filepath.Join(runs, finishedFile), maxFinished)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

func rememberFinished(runs string, gone []string) error {
	list := readFinished(runs)
	for i := len(gone) - 1; i >= 0; i-- { // prune goes from the newest
		if !slices.Contains(list, gone[i]) {
			list = append(list, gone[i])
		}
	}
	list = list[max(0, len(list)-finishedMax):]
	if err := atomicfile.Write(filepath.Join(runs, finishedFile), []byte(strings.Join(list, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("list of finished runs: %w", err)
	}
	return nil
}
