package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/rpc/reply"
	"linktrial/orchestrator/store"
)

var (
	runsByState      = gauge("runs", "Runs by state, those that have ended too.", "state")
	runInfo          = gauge("run_info", "1, with what the open run is.", "run", "campaign", "plan", "radio", "topology", "state")
	runTrials        = gauge("run_trials", "Trials that the run has.", "run")
	runTrialsEnded   = gauge("run_trials_ended", "Trials that have ended, skipped ones and those that a rule to stop by left out too.", "run")
	runAttempts      = gauge("run_attempts", "Attempts that have ended, by verdict; succeeded ones are valid, invalid ones do not count, whatever they measured. A mark moves one from one verdict to another.", "run", "verdict")
	runPaused        = gauge("run_paused", "Whether the run is paused, or is to be after the trial under way: 1, else 0.", "run")
	runWaiting       = gauge("run_waiting", "1 where a run that is not paused waits: for people to move nodes, for a node before it begins, or for a radio; else 0.", "run")
	runLeft          = gauge("run_left_seconds", "Estimated time until the run's last trial has ended, pauses apart; absent: not known.", "run")
	runStarted       = gauge("run_started_timestamp_seconds", "When the run began.", "run")
	runThroughput    = gauge("run_throughput_bytes_per_second", "Newest throughput of the run's attempt under way, over two seconds, all flows together; absent: no attempt is under way, or none of its samples has come.", "run")
	runAttemptBytes  = gauge("run_attempt_bytes", "Payload of the attempt under way so far, acknowledged where the protocol tells; absent as the throughput.", "run")
	runElapsed       = gauge("run_attempt_elapsed_seconds", "Time of the attempt under way at its newest sample; absent as the throughput.", "run")
	journalRecords   = gauge("journal_records", "Records of the node's journal of an open run that are stored.", "run", "node")
	journalDelivered = gauge("journal_delivered_timestamp_seconds", "When the newest of them came. The journal's lag is at most the time since.", "run", "node")

	runMetrics = []*prometheus.Desc{runsByState, runInfo, runTrials, runTrialsEnded, runAttempts, runPaused, runWaiting, runLeft, runStarted,
		runThroughput, runAttemptBytes, runElapsed, journalRecords, journalDelivered}
)

// sendRuns sends how many runs there are, and of those that have not ended how far they are.
func (s *state) sendRuns(e *exposition, r *reading) {
	for _, st := range campaign.States {
		e.send(runsByState, float64(r.counts[st]), string(st))
	}
	sent := map[string]bool{}
	for i := range r.runs {
		o := &r.runs[i]
		sent[o.ID] = true
		s.sendRun(e, o)
		attempts := r.attempts[o.ID]
		for _, v := range campaign.Verdicts {
			e.send(runAttempts, float64(attempts.By[v]), o.ID, string(v))
		}
		if attempts.Attempt > 0 {
			s.sendAttempt(e, o.ID, attempts.Trial, attempts.Attempt)
		}
	}
	for _, j := range r.journals {
		if sent[j.Run] {
			e.send(journalRecords, float64(j.Records), j.Run, j.Node)
			e.send(journalDelivered, timestamp(j.Delivered), j.Run, j.Node)
		}
	}
}

func (s *state) sendRun(e *exposition, o *store.RunOverview) {
	run := reply.Run(o)
	e.send(runInfo, 1, o.ID, o.CampaignID, o.Plan, o.Radio, o.Topology, o.State)
	e.send(runTrials, float64(o.Trials), o.ID)
	e.send(runTrialsEnded, float64(o.TrialsEnded), o.ID)
	e.send(runPaused, oneIf(run.Paused), o.ID)
	e.send(runWaiting, oneIf(!run.Paused && s.waits(o)), o.ID)
	if run.EstimatedSecondsLeft > 0 && !s.engine.Nodes.AnyVirtual(o.Nodes) {
		e.send(runLeft, run.EstimatedSecondsLeft, o.ID)
	}
	if o.StartedAt != nil {
		e.send(runStarted, timestamp(*o.StartedAt), o.ID)
	}
}

// waits reports whether a run waits for something that people can do about. One that is
// queued waits for its turn.
func (s *state) waits(o *store.RunOverview) bool {
	switch campaign.State(o.State) {
	case campaign.Waiting:
		return true
	case campaign.Preparing:
		return len(s.engine.Live.Of(o.ID).WaitingFor) > 0
	case campaign.Running:
		w := s.engine.Live.Of(o.ID).Wait
		return w != nil && w.Fault != ""
	}
	return false
}

// sendAttempt sends how far the attempt under way is, where samples of it have come.
func (s *state) sendAttempt(e *exposition, run string, trial, attempt int) {
	p := s.engine.Live.Of(run).Progress
	if p == nil || p.Trial != trial || p.Attempt != attempt {
		return
	}
	e.send(runAttemptBytes, float64(p.Bytes), run)
	e.send(runElapsed, p.Elapsed.Seconds(), run)
	if rate, known := s.engine.Live.Throughput(run, trial, attempt); known {
		e.send(runThroughput, rate, run)
	}
}
