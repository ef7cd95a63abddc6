package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"linktrial/executor/runsheet"
)

// The codes of the checks, in the order of a report.
const (
	Integrity = "integrity"
	Stored    = "stored"
	Attempts  = "attempts"
	Trials    = "trials"
	Numbering = "numbering"
	Order     = "order"
	Looks     = "looks"
	Digests   = "digests"
	Samples   = "samples"
	Clocks    = "clocks"
	Faults    = "faults"
	Live      = "live"
	Exports   = "exports"
)

func newChecks() []*Check {
	return []*Check{
		{Code: Integrity, Unit: "journal records", Proves: "Every record has its checksum, the next number, and the run, node and role of its journal; each journal is of the run's sheet and ends with the end of the run."},
		{Code: Stored, Unit: "journal records", Proves: "Each record that a node wrote is in the store with the same content, and the store has no other."},
		{Code: Attempts, Unit: "attempts", Proves: "The store's table has every attempt of the leading node's journal with its outcome, and no other; where tables show another outcome, a mark or a rule says why."},
		{Code: Trials, Unit: "trials", Proves: "Every trial of the sheet has exactly one terminal attempt that counts, or a stated reason why it has none."},
		{Code: Numbering, Unit: "attempts", Proves: "Attempts of a trial are numbered from 1 without gaps, none is overwritten or ends twice, no trial ends twice, and none has more attempts than the plan allows but for faults of the apparatus and repetitions."},
		{Code: Order, Unit: "attempts", Proves: "Trials ran in the order of the sheet, with its iterations and treatments, and repetitions in their trial's place."},
		{Code: Looks, Unit: "looks", Proves: "Where the plan has a rule to stop by, the leading node looked once after each iteration that the sheet states, up to the look that stops the run; what each look found follows from the records before it; and trials are not needed where looks say so, and nowhere else."},
		{Code: Digests, Unit: "transfers", Proves: "Of every attempt whose value counts, sender and receiver report the same size and SHA-256, and the size is the sheet's."},
		{Code: Samples, Unit: "samples", Proves: "Samples are of the right end of a flow of an attempt that ran, none is earlier than the one before, and no counter goes back."},
		{Code: Clocks, Unit: "journal records", Proves: "With the steps that journals tell taken off, the records of each node are in the order of time; where the plan has the rule clock_step, no attempt counts during which the clock of a node stepped by more."},
		{Code: Faults, Unit: "attempts", Proves: "No attempt that overlaps an injected fault which can change its outcome counts for or against a protocol, but as a success that the server confirms."},
		{Code: Live, Unit: "values", Proves: "Progress, attempts, charts and values of treatments that lists and pages show are those that follow from the journals."},
		{Code: Exports, Unit: "rows", Proves: "Attempts, counts, mean, minimum, maximum, standard deviation and median in exported files are those that follow from the journals."},
	}
}

// auditor is the audit of one run.
type auditor struct {
	run    *Run
	sheet  *runsheet.Sheet
	report *Report

	sources  []*source
	history  history
	ruling   ruling
	received map[string][]reception // by transfer
	streams  map[stream]*streamState
	// controlled is the control packets that nodes counted, by role.
	controlled map[string]int64
	crashed    map[string]bool // treatments of which a listener or relay process crashed
}

// Audit checks one run. The error is that something could not be read at all.
func Audit(run *Run) (*Report, error) {
	a := &auditor{run: run, report: &Report{Run: run.ID, Checks: newChecks()}, received: map[string][]reception{}, streams: map[stream]*streamState{}, controlled: map[string]int64{}, crashed: map[string]bool{}}
	a.history.checks = a
	if err := a.readSheet(); err != nil {
		return nil, err
	}
	if err := a.pair(); err != nil {
		return nil, err
	}
	for _, s := range a.sources {
		if err := a.read(s); err != nil {
			return nil, err
		}
	}
	a.history.end()
	a.endLooks()
	a.checkParts()
	a.checkRows()
	a.checkTrials()
	a.checkDigests()
	a.checkStreams()
	a.checkClocks()
	a.checkFaults()
	values := a.valuesOf()
	a.checkLive(values)
	if err := a.checkExports(values); err != nil {
		return nil, err
	}
	for _, c := range a.report.Checks {
		c.settle()
	}
	return a.report, nil
}

func (a *auditor) check(code string) *Check { return a.report.Check(code) }

// readSheet decodes the sheet with the JSON package alone.
func (a *auditor) readSheet() error {
	sum := sha256.Sum256(a.run.Sheet)
	if got := hex.EncodeToString(sum[:]); got != a.run.SheetHash {
		a.check(Integrity).find(Finding{}, "the store's run sheet has the SHA-256 %s, the run's is %s", got, a.run.SheetHash)
	}
	a.sheet = &runsheet.Sheet{}
	if err := json.Unmarshal(a.run.Sheet, a.sheet); err != nil {
		return fmt.Errorf("run %s: its run sheet cannot be read: %w", a.run.ID, err)
	}
	if len(a.sheet.Trials) == 0 {
		return errors.New("run " + a.run.ID + ": its run sheet has no trials")
	}
	return nil
}
