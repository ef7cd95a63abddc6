package terminal

import (
	"strings"
	"testing"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// A pause, how to end it, and its end are each written once.
func TestProgressOfPausedRun(t *testing.T) {
	var out strings.Builder
	p := &Progress{out: &out, runs: map[string]*linktrialv1.Run{}, ended: map[string]map[int32]bool{}}
	state := func(s linktrialv1.RunState, paused, pausing bool, left float64) {
		p.run(&linktrialv1.Run{Id: "x-1", Radio: "r", Topology: "near", SizeBytes: 1024, Trials: 2, State: s, Paused: paused, Pausing: pausing, EstimatedSecondsLeft: left})
	}
	const running = linktrialv1.RunState_RUN_STATE_RUNNING
	state(linktrialv1.RunState_RUN_STATE_QUEUED, false, false, 60)
	state(linktrialv1.RunState_RUN_STATE_WAITING, false, false, 60)
	state(linktrialv1.RunState_RUN_STATE_WAITING, true, true, 60)
	state(linktrialv1.RunState_RUN_STATE_PREPARING, true, true, 60)
	state(running, true, true, 60)
	state(running, true, false, 60)
	state(running, true, false, 30)
	state(running, false, false, 30)
	state(running, true, false, 20) // the command and its effect in one event
	state(linktrialv1.RunState_RUN_STATE_ABORTED, false, false, 0)
	want := `run x-1: r, near, 1 KiB: waiting until the nodes are at the positions of the topology; to continue: linktrial run continue x-1
run x-1: pauses at the next trial boundary
run x-1: r, near, 1 KiB: preparing 2 trials
run x-1: running, about 60 s
run x-1: paused; to resume: linktrial run resume x-1
run x-1: resumed
run x-1: paused; to resume: linktrial run resume x-1
run x-1: aborted: 
`
	if out.String() != want {
		t.Errorf("got\n%s\nexpected\n%s", out.String(), want)
	}
}

// Trials that the plan's rule to stop by left out are a line together, and are done.
func TestProgressOfTrialsNotNeeded(t *testing.T) {
	var out strings.Builder
	p := &Progress{out: &out, runs: map[string]*linktrialv1.Run{}, ended: map[string]map[int32]bool{}}
	r := &linktrialv1.Run{Id: "x-1", Trials: 3, State: linktrialv1.RunState_RUN_STATE_RUNNING}
	p.run(r)
	out.Reset()
	p.run(&linktrialv1.Run{Id: "x-1", Trials: 3, State: r.State, TrialsNotNeeded: 2})
	for trial := range int32(2) {
		p.trialEnded(&linktrialv1.TrialEnded{RunId: "x-1", Trial: trial, LastAttempt: true, Attempt: &linktrialv1.AttemptRow{Verdict: "aborted", Reason: "not-needed"}})
	}
	p.trialEnded(&linktrialv1.TrialEnded{RunId: "x-1", Trial: 2, Iteration: 1, Treatment: "a", LastAttempt: true, Attempt: &linktrialv1.AttemptRow{Verdict: "aborted", Reason: "skipped"}})
	want := "run x-1: the plan's rule to stop by leaves out 2 trials\n  3/3  trial 2   iteration 1   a                 aborted: skipped\n"
	if out.String() != want {
		t.Errorf("got\n%s\nexpected\n%s", out.String(), want)
	}
}
