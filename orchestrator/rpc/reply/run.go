// Package reply makes what several services answer with: errors with the code
// that callers branch on, and runs.
package reply

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store"
)

var states = map[string]linktrialv1.RunState{
	string(campaign.Queued):     linktrialv1.RunState_RUN_STATE_QUEUED,
	string(campaign.Waiting):    linktrialv1.RunState_RUN_STATE_WAITING,
	string(campaign.Preparing):  linktrialv1.RunState_RUN_STATE_PREPARING,
	string(campaign.Running):    linktrialv1.RunState_RUN_STATE_RUNNING,
	string(campaign.Collecting): linktrialv1.RunState_RUN_STATE_COLLECTING,
	string(campaign.Completed):  linktrialv1.RunState_RUN_STATE_COMPLETED,
	string(campaign.Aborted):    linktrialv1.RunState_RUN_STATE_ABORTED,
	string(campaign.Stopped):    linktrialv1.RunState_RUN_STATE_STOPPED,
}

// State is a state of the store as calls answer with it.
func State(s string) linktrialv1.RunState { return states[s] }

// Run is a run as calls answer with it.
func Run(o *store.RunOverview) *linktrialv1.Run {
	r := &linktrialv1.Run{Id: o.ID, CampaignId: o.CampaignID, Plan: o.Plan, Radio: o.Radio, Topology: o.Topology, SizeBytes: o.SizeBytes,
		State: states[o.State], Message: o.Message, Trials: o.Trials, TrialsEnded: o.TrialsEnded, TrialsNotNeeded: o.TrialsNotNeeded, AttemptsFailed: o.AttemptsFailed,
		SheetHash: o.SheetHash, Place: o.Place, Created: timestamppb.New(o.CreatedAt), Nodes: o.Nodes, Sealed: o.Sealed, LateRecords: o.LateRecords}
	if o.StartedAt != nil {
		r.Started = timestamppb.New(*o.StartedAt)
	}
	if o.EndedAt != nil {
		r.Ended = timestamppb.New(*o.EndedAt)
	} else {
		r.EstimatedSecondsLeft = secondsLeft(o)
		r.Aborting = o.Aborting
		// Ordered to pause, or ordered to go on and not there yet.
		r.Paused = o.PauseRequested || o.Held
		r.Pausing = o.PauseRequested && !o.PauseSettled
		if r.Paused {
			r.PauseReason = o.PauseReason
		}
	}
	return r
}

// secondsLeft corrects the estimate of the trials to come by how the estimates
// of those that have ended turned out, within a factor of ten.
func secondsLeft(o *store.RunOverview) float64 {
	left := o.EstimatedSecondsLeft
	if o.EstimatedSecondsEnded > 0 && o.MeasuredSecondsEnded > 0 {
		left *= max(0.1, min(10, o.MeasuredSecondsEnded/o.EstimatedSecondsEnded))
	}
	return left
}

// Attempt is an attempt as calls answer with it.
func Attempt(a *report.Attempt) *linktrialv1.AttemptRow {
	row := &linktrialv1.AttemptRow{Attempt: int32(a.Attempt), Verdict: string(a.Verdict), Reason: a.Reason, Message: a.Message,
		ThroughputBytesPerSecond: a.ThroughputBytesPerSecond(), ElapsedSeconds: a.Elapsed.Seconds(), ConnectSeconds: a.Connect.Seconds(),
		IdealSeconds: a.Ideal.Seconds(), CodedBoundSeconds: a.CodedBound.Seconds(), Started: timestamppb.New(a.Started), MeasuredBytesPerSecond: a.MeasuredBytesPerSecond(), Undecided: a.Undecided}
	for _, c := range a.Control {
		row.Control = append(row.Control, &linktrialv1.ControlCount{Role: string(c.Role), Packets: c.Packets, Bytes: c.Bytes, Unknown: c.Unknown})
	}
	if m := a.Mark; m != nil {
		row.Mark = &linktrialv1.Mark{Reason: m.Reason, By: m.By, Given: timestamppb.New(m.At),
			JournalVerdict: string(m.Verdict), JournalReason: m.JournalReason, JournalMessage: m.JournalMessage}
	}
	return row
}
