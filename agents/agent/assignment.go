package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"linktrial/agents/session"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/signature"
)

// errExpired is of an assignment that the node's clock may take for expired because it
// is wrong: it is accepted when the clock is right.
var errExpired = errors.New("expired")

// openAssignment returns an assignment as the orchestrator sent it in the answer to a
// call with this challenge, or reports why nothing of it must be used. A brief answer is
// without sheets.
func (a *agent) openAssignment(s *linktrialv1.SignedAssignment, challenge []byte, brief bool) (*linktrialv1.Assignment, error) {
	as, err := a.decodeAssignment(s.GetAssignment(), signature.Signature{KeyID: s.GetKeyId(), Bytes: s.GetSignature()})
	if err != nil {
		return nil, err
	}
	if id := a.certificate; id == nil && len(as.NodeKey) > 0 || id != nil && !id.HasKey(as.NodeKey) {
		return nil, fmt.Errorf("refused: the assignment is for another machine with the name %s (its certificate's key is %.16x…, which this node does not have); nothing was started", as.Node, as.NodeKey)
	}
	if expires, now := time.UnixMilli(as.ExpiresUnixMs), a.cfg.Clock.Now(); now.After(expires) {
		return nil, fmt.Errorf("refused: the assignment %w at %s, and this node's clock says %s: set the clock if it is wrong; nothing was started", errExpired, moment(expires), moment(now))
	}
	if !bytes.Equal(as.Challenge, challenge) || len(challenge) == 0 {
		return nil, errors.New("refused: the assignment does not answer this node's call: it was recorded and sent again; nothing was started")
	}
	if as.RunId == "" {
		return as, nil
	}
	if !runForm.MatchString(as.RunId) {
		return nil, fmt.Errorf("refused: run %.140q: expected letters, digits, hyphens and underscores", as.RunId)
	}
	if h := runsheet.Hash(s.Sheet); h != as.SheetHash && (!brief || len(s.Sheet) > 0) {
		return nil, fmt.Errorf("refused: the run sheet beside the assignment has the hash %.12s…, and the assignment says %.12s…: it was changed on its way; nothing was started", h, as.SheetHash)
	}
	if slices.Contains(readFinished(a.cfg.runsDir()), as.RunId) {
		return nil, fmt.Errorf("refused: this node has finished run %s already and does not begin it again; start the plan again", as.RunId)
	}
	return as, nil
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// maxRefused bounds the refused assignments of one answer that are reported.
const maxRefused = 20

// applyAssignments brings the node's runs to the states that the orchestrator wants. It
// reports whether it refuses a part of the answer: nothing of that is used, and nothing
// of it is kept.
func (a *agent) applyAssignments(ctx context.Context, r session.Answer) (refused bool) {
	a.interfacesTold()
	var open []*linktrialv1.Assignment
	var faults []fault
	listed := map[string]bool{}
	complete := true // all that the orchestrator sent is there, once
	for _, s := range r.Assignments {
		as, err := a.openAssignment(s, r.Challenge, r.Brief)
		if err != nil {
			if len(faults) < maxRefused {
				faults = append(faults, a.refusal(s, err))
			}
			continue
		}
		complete = complete && int(as.Total) == len(r.Assignments) && !listed[as.RunId]
		listed[as.RunId] = true
		open = append(open, as)
		if as.RunId != "" {
			a.applyRun(ctx, as, s)
		}
		a.preflight(ctx, as)
		a.orderRadio(ctx, as.RadioOrder)
	}
	a.noteRefused(faults)
	if len(faults) > 0 || len(open) == 0 || !complete {
		return len(faults) > 0 // what is not in such an answer may have been taken out of it
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, r := range a.runs {
		r.setListed(listed[id])
	}
	return false
}

// preflight begins the preflight that the orchestrator wants, each one once. An
// agent that was started again begins anew: its report has not been sent yet.
func (a *agent) preflight(ctx context.Context, as *linktrialv1.Assignment) {
	w := as.Preflight
	if w == nil || w.Id == "" {
		return
	}
	a.mu.Lock()
	known := a.preflightID == w.Id
	a.preflightID = w.Id
	a.mu.Unlock()
	if known {
		return
	}
	a.running.Go(func() {
		if w.Transfers != nil {
			a.runTransfers(ctx, w)
			return
		}
		a.runPreflight(ctx, w, as.TelemetryAddresses)
	})
}

// refusal is the fault to be reported of an assignment that is refused. One of a run
// that goes on here does not end it: who sent it may not be the orchestrator. Nor does
// one that has expired: the run waits until the clock is right.
func (a *agent) refusal(s *linktrialv1.SignedAssignment, err error) fault {
	f := fault{text: err.Error()}
	a.mu.Lock()
	defer a.mu.Unlock()
	if run := s.GetRefusedRunId(); !errors.Is(err, errExpired) && runForm.MatchString(run) && a.runs[run] == nil && !a.isStored(run) {
		f.run = run
	}
	return f
}

// noteRefused keeps what was refused of the last answer, and logs it when it is
// something else than before.
func (a *agent) noteRefused(faults []fault) {
	a.mu.Lock()
	known := slices.Equal(faults, a.refused)
	a.refused = faults
	a.mu.Unlock()
	if known {
		return
	}
	for _, f := range faults {
		a.cfg.Logger.Error("assignment is refused", "run", f.run, "reason", f.text)
	}
}

var desiredStates = map[linktrialv1.Assignment_DesiredState]DesiredState{
	linktrialv1.Assignment_DESIRED_STATE_PREPARE: desiredPrepare,
	linktrialv1.Assignment_DESIRED_STATE_RUN:     desiredRun,
	linktrialv1.Assignment_DESIRED_STATE_FINISH:  desiredFinish,
	linktrialv1.Assignment_DESIRED_STATE_ABORT:   desiredAbort,
}

// applyRun brings one run to the state that the orchestrator wants; as is s, verified.
func (a *agent) applyRun(ctx context.Context, as *linktrialv1.Assignment, s *linktrialv1.SignedAssignment) {
	desired, ok := desiredStates[as.DesiredState]
	if !ok {
		a.cfg.Logger.Warn("assignment has a desired state that this agent does not know", "run", as.RunId, "desired_state", int32(as.DesiredState))
		return
	}
	a.mu.Lock()
	r := a.runs[as.RunId]
	a.mu.Unlock()
	if r == nil && len(s.Sheet) == 0 {
		return // the next answer that is not brief has it
	}
	if r != nil {
		r.addCommands(as.Commands) // first: a run that is paused must not begin
		r.setDesired(desired, as.Reason)
		return
	}
	if a.isStored(as.RunId) {
		return
	}
	n := note{Run: as.RunId, SheetHash: as.SheetHash, KeyID: as.Signature.GetKeyId(), Signature: as.Signature.GetSignature(), Desired: desired, Reason: as.Reason, Taken: a.cfg.Clock.Now().UTC(),
		Assignment: s.Assignment, AssignmentKeyID: s.KeyId, AssignmentSignature: s.Signature}
	if a.cfg.Role == radio.RoleClient {
		n.Commands = asCommands(as.Commands)
	}
	if err := a.saveRun(n, s.Sheet); err != nil {
		// Nothing was begun: the next answer tries again.
		a.cfg.Logger.Error("assignment could not be accepted", "run", as.RunId, "error", err)
		return
	}
	a.cfg.Logger.Info("run is assigned to this node", "run", as.RunId, "desired_state", string(desired))
	a.startRun(ctx, n)
}

// learnRadio reads the node's radio by the profile that the orchestrator has of it,
// as far as that is signed; nil: the orchestrator has none.
func (a *agent) learnRadio(signed *linktrialv1.SignedAssignment, challenge []byte) {
	if signed == nil {
		a.noteProfile(false, nil)
		return
	}
	as, err := a.openAssignment(signed, challenge, false)
	a.noteProfile(err == nil && len(as.RadioProfile) > 0, err)
	if err != nil || a.cfg.Radio == "" {
		return
	}
	if p := a.cfg.readProfile(as.RadioProfile, "telemetry between runs"); p != nil {
		a.radio.setIdle(a.cfg.poller(p, nil, as.TelemetryAddresses))
	}
}
