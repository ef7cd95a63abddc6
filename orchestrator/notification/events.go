package notification

import (
	"context"
	"fmt"
	"strings"
	"time"

	"linktrial/internal/unit"
	"linktrial/orchestrator/campaign"
	"linktrial/orchestrator/library"
	"linktrial/orchestrator/notification/notificationdb"
)

// events derives what there is to tell: what has happened since then as the store has it, and
// what nodes report now. Some of it may have been stored meanwhile.
func (n *Notifier) events(ctx context.Context, since time.Time) ([]event, error) {
	// Read before runs and told after them: a campaign that has ended is never told before its run.
	campaigns, err := n.endedCampaigns(ctx, since)
	if err != nil {
		return nil, err
	}
	var out []event
	for _, read := range []func(context.Context, time.Time) ([]event, error){n.endedRuns, n.waitingRuns, n.pausedRuns, n.losses, n.failedStarts, n.conditions} {
		more, err := read(ctx, since)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return append(out, campaigns...), nil
}

func pageOf(campaign string) string { return "/runs/" + campaign }

func (n *Notifier) endedRuns(ctx context.Context, since time.Time) ([]event, error) {
	rows, err := n.db.EndedRuns(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("runs that have ended: %w", err)
	}
	var out []event
	for i := range rows {
		out = append(out, endedRun(&rows[i]))
	}
	return out, nil
}

func endedRun(r *notificationdb.EndedRunsRow) event {
	e := event{key: "ended/" + r.ID, Notification: Notification{At: *r.EndedAt, Campaign: r.CampaignID, Run: r.ID, Path: pageOf(r.CampaignID)}}
	what := fmt.Sprintf("%s: run %s (%s, %s)", r.Campaign, r.ID, r.Radio, r.Topology)
	done := fmt.Sprintf("%d of %d trials have ended", r.TrialsEnded, r.Trials)
	if r.AttemptsFailed > 0 {
		done += fmt.Sprintf(", %s without success", count(r.AttemptsFailed, "attempt"))
	}
	e.Text = join(sentence(r.Message), sentence(done))
	switch campaign.State(r.State) {
	case campaign.Completed:
		e.Kind, e.Title = runEnded.Key, what+" has completed"
	case campaign.Stopped:
		e.Kind, e.Title, e.Urgent = runFailed.Key, what+" was stopped by a fault", true
	default:
		e.Kind, e.Title = runFailed.Key, what+" was aborted"
	}
	return e
}

func count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func join(sentences ...string) string {
	var out []string
	for _, s := range sentences {
		if s != "" {
			out = append(out, s)
		}
	}
	return strings.Join(out, " ")
}

func (n *Notifier) endedCampaigns(ctx context.Context, since time.Time) ([]event, error) {
	rows, err := n.db.EndedCampaigns(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("campaigns that have ended: %w", err)
	}
	var out []event
	for _, r := range rows {
		var how []string
		for _, x := range []struct {
			n    int64
			word string
		}{{r.Completed, "completed"}, {r.Stopped, "stopped by a fault"}, {r.Aborted, "aborted"}} {
			if x.n > 0 {
				how = append(how, fmt.Sprintf("%d %s", x.n, x.word))
			}
		}
		text := fmt.Sprintf("%s: %s", count(r.Runs, "run"), strings.Join(how, ", "))
		if r.Unbegun > 0 {
			text += fmt.Sprintf("; %d of them had not begun", r.Unbegun)
		}
		if r.Reason != "" {
			text = join(sentence(text), sentence("The first reason: "+r.Reason))
		}
		out = append(out, event{key: "campaign-ended/" + r.CampaignID, Notification: Notification{Kind: campaignEnded.Key, At: r.EndedAt, Title: r.Campaign + ": the campaign has ended",
			Text: sentence(text), Campaign: r.CampaignID, Urgent: r.Stopped > 0, Path: pageOf(r.CampaignID)}})
	}
	return out, nil
}

func (n *Notifier) waitingRuns(ctx context.Context, _ time.Time) ([]event, error) {
	rows, err := n.db.WaitingRuns(ctx)
	if err != nil {
		return nil, fmt.Errorf("runs that wait for people: %w", err)
	}
	var out []event
	for _, r := range rows {
		text := ""
		if r.Done != "" && r.Done != r.Topology {
			text = sentence(fmt.Sprintf("The runs at %s are done", r.Done))
		}
		text = join(text, fmt.Sprintf("Move the nodes %s to where %s has them, and let run %s continue on its page, or with: linktrial run continue %[3]s", strings.Join(r.Nodes, ", "), r.Topology, r.ID))
		out = append(out, event{key: "waits/" + r.ID, Notification: Notification{Kind: waits.Key, At: n.cfg.Now(), Title: fmt.Sprintf("%s: the nodes have to be moved to %s", r.Campaign, r.Topology),
			Text: text, Campaign: r.CampaignID, Run: r.ID, Urgent: true, Path: pageOf(r.CampaignID)}})
	}
	return out, nil
}

func (n *Notifier) pausedRuns(ctx context.Context, _ time.Time) ([]event, error) {
	rows, err := n.db.PausedRuns(ctx)
	if err != nil {
		return nil, fmt.Errorf("runs that are paused: %w", err)
	}
	var out []event
	for _, r := range rows {
		out = append(out, event{key: fmt.Sprintf("paused/%s/%d", r.ID, r.Seq), Notification: Notification{Kind: runPaused.Key, At: r.At, Title: fmt.Sprintf("%s: the leading node paused run %s", r.Campaign, r.ID),
			Text: sentence(r.Reason), Campaign: r.CampaignID, Run: r.ID, Urgent: true, Path: pageOf(r.CampaignID)}})
	}
	return out, nil
}

func (n *Notifier) losses(ctx context.Context, since time.Time) ([]event, error) {
	rows, err := n.db.ContactLosses(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("nodes without contact: %w", err)
	}
	var out []event
	for _, r := range rows {
		of := fmt.Sprintf("%s/%s/%d", r.RunID, r.Node, r.LostAt.UnixMicro())
		e := Notification{Kind: noContact.Key, Campaign: r.CampaignID, Run: r.RunID, Node: r.Node, Path: pageOf(r.CampaignID)}
		if r.BackAt == nil {
			e.At, e.Urgent = r.LostAt, true
			e.Title = fmt.Sprintf("No contact with %s since %s", r.Node, unit.Clock(r.LostAt))
			e.Text = fmt.Sprintf("It takes part in run %s of %s. Whether the run continues there is not known; records that the node keeps arrive when contact is back.", r.RunID, r.Campaign)
			out = append(out, event{"lost/" + of, e})
			continue
		}
		e.At = *r.BackAt
		e.Title = fmt.Sprintf("Contact with %s is back after %.0f s", r.Node, r.BackAt.Sub(r.LostAt).Seconds())
		e.Text = fmt.Sprintf("It takes part in run %s of %s.", r.RunID, r.Campaign)
		if r.Restarted {
			e.Text += " Its agent was started again meanwhile."
		}
		out = append(out, event{"back/" + of, e})
	}
	return out, nil
}

func (n *Notifier) failedStarts(ctx context.Context, since time.Time) ([]event, error) {
	rows, err := n.db.FailedStarts(ctx, since)
	if err != nil {
		return nil, fmt.Errorf("scheduled starts: %w", err)
	}
	var out []event
	for _, r := range rows {
		name := r.Name
		if name == "" {
			name = r.Plan
		}
		what, how := fmt.Sprintf("%s, scheduled for %s,", name, unit.Moment(r.StartAt)), "did not start"
		if r.State == string(library.Skipped) {
			how = "was skipped"
		}
		first, more, _ := strings.Cut(strings.TrimSpace(r.Message), "\n")
		if more != "" {
			first += fmt.Sprintf(", and %s", count(int64(strings.Count(strings.TrimSpace(more), "\n")+1), "more problem"))
		}
		out = append(out, event{key: "start/" + r.ID, Notification: Notification{Kind: startFailed.Key, At: *r.EndedAt, Title: what + " " + how, Text: sentence(first), Urgent: r.State != string(library.Skipped), Path: "/plans"}})
	}
	return out, nil
}
