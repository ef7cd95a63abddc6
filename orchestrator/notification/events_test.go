package notification_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet"
	"linktrial/orchestrator/notification"
	"linktrial/orchestrator/store/storetest"
)

func kindsTold(all []notification.Notification) (out []string) {
	for _, n := range all {
		out = append(out, n.Kind)
	}
	return out
}

// What was before the first start is not told; what happened while the orchestrator was not
// running is, once, unless it is old; and nothing is told twice.
func TestToldOnceOverRestarts(t *testing.T) {
	d := newDesk(t)
	d.end(d.run("before"), "completed", "")
	d.start()
	d.end(d.run("first"), "completed", "")
	require.Equal(t, []string{"run-ended", "campaign-ended"}, kindsTold(d.told(2)))
	d.n.Stop()

	d.end(d.run("down"), "aborted", "rain")
	old := d.run("older")
	d.end(old, "completed", "")
	d.sql("UPDATE notification_begin SET at = now() - interval '3 days'")
	d.sql("UPDATE runs SET ended_at = now() - interval '25 hours' WHERE id = $1", old)
	d.sql("UPDATE runs SET ended_at = now() - interval '26 hours' WHERE id = 'before-1'")
	for range 3 {
		d.start()
		all := d.told(4)
		require.Equal(t, []string{"run-failed", "campaign-ended"}, kindsTold(all[2:]))
		require.Contains(t, all[2].Title, "was aborted")
		require.Contains(t, all[2].Text, "Rain.")
		require.False(t, all[2].Urgent, "somebody has asked for it")
		time.Sleep(1500 * time.Millisecond) // it looks once more
		d.told(4)
		d.n.Stop()
	}
}

// A run that was aborted before its nodes were told of it, and one that completed in virtual
// time, are told with their campaigns alone; one that fails in virtual time is told.
func TestNotEveryRunIsTold(t *testing.T) {
	d := newDesk(t).start()
	queued := storetest.AddRun(t, d.store, "queued", storetest.Sheet(2))
	d.end(queued, "aborted", "no time")
	require.Equal(t, []string{"campaign-ended"}, kindsTold(d.told(1)))
	require.Contains(t, d.told(1)[0].Text, "1 of them had not begun")

	virtual := d.run("virtual")
	d.sql("UPDATE nodes SET virtual = true")
	d.end(virtual, "completed", "")
	require.Equal(t, []string{"campaign-ended"}, kindsTold(d.told(2)[1:]))
	again := d.run("again")
	d.sql("UPDATE nodes SET virtual = true")
	d.end(again, "stopped", "a fault")
	require.Equal(t, []string{"run-failed", "campaign-ended"}, kindsTold(d.told(4)[2:]))
}

func TestWaitsPausesAndLosses(t *testing.T) {
	d := newDesk(t).start()
	run := d.run("camp")
	d.sql("UPDATE runs SET state = 'waiting', started_at = NULL, prepared_at = NULL, topology = 'k-lot' WHERE id = $1", run)
	n := d.told(1)[0]
	require.Equal(t, "waits-for-people", n.Kind)
	require.Equal(t, "test: the nodes have to be moved to k-lot", n.Title)
	require.Equal(t, "Move the nodes client, relay, server to where k-lot has them, and let run "+run+" continue on its page, or with: linktrial run continue "+run, n.Text)

	d.sql("UPDATE runs SET state = 'running', started_at = now(), prepared_at = now() WHERE id = $1", run)
	record := func(seq int, body string) {
		d.sql("INSERT INTO journal (run_id, node, seq, type, at, body, digest) VALUES ($1, 'client', $2, 'command', now(), $3::text::jsonb, sha256(convert_to($3::text, 'UTF8')))", run, seq, body)
	}
	record(1, `{"kind": "pause"}`)
	record(2, `{"kind": "resume"}`)
	record(3, `{"kind": "pause", "reason": "the radio is gone"}`)
	n = d.told(2)[1]
	require.Equal(t, []string{"run-paused", "The radio is gone.", run}, []string{n.Kind, n.Text, n.Run})
	record(4, `{"kind": "resume"}`)
	record(5, `{"kind": "pause", "reason": "the radio is gone"}`)
	d.told(3)

	lost := time.Now().UTC().Truncate(time.Microsecond)
	// It is over before anybody looks.
	d.sql("INSERT INTO contact_losses (run_id, node, lost_at, back_at) VALUES ($1, 'server', now(), now())", run)
	d.sql("INSERT INTO contact_losses (run_id, node, lost_at) VALUES ($1, 'relay', $2)", run, lost)
	n = d.told(4)[3]
	require.Equal(t, []string{"no-contact", "relay"}, []string{n.Kind, n.Node})
	require.True(t, n.Urgent)
	require.Contains(t, n.Title, "No contact with relay since ")
	d.sql("UPDATE contact_losses SET back_at = $2, restarted = true WHERE run_id = $1 AND node = 'relay'", run, lost.Add(9*time.Second))
	n = d.told(5)[4]
	require.Equal(t, "Contact with relay is back after 9 s", n.Title)
	require.Contains(t, n.Text, "started again meanwhile")
	require.False(t, n.Urgent)
}

func TestFailedStarts(t *testing.T) {
	d := newDesk(t).start()
	add := func(id, state, message string) {
		d.sql(`INSERT INTO schedules (id, plan, plan_text, plan_hash, start_at, estimated_seconds, name, given_by, given_at, state, message, ended_at)
			VALUES ($1, 'demo', 'x', encode(sha256('x'), 'hex'), now(), 1, '', 'ada', now(), $2, $3, now())`, id, state, message)
	}
	add("a", "failed", "could not start within 2m0s: no node has the role relay\nline two\nline three")
	n := d.told(1)[0]
	require.Equal(t, "start-failed", n.Kind)
	require.Regexp(t, `^demo, scheduled for .* UTC, did not start$`, n.Title)
	require.Equal(t, "Could not start within 2m0s: no node has the role relay, and 2 more problems.", n.Text)
	add("b", "cancelled", "")
	add("c", "skipped", "the run before is under way")
	n = d.told(2)[1]
	require.Contains(t, n.Title, "was skipped")
	require.False(t, n.Urgent)
}

// What nodes report is told once in a run, also over restarts, and a source after a while.
func TestConditions(t *testing.T) {
	d := newDesk(t).start()
	run, charge := d.run("camp"), 0.19
	node := func(name, run string, virtual bool) nodes.Node {
		return nodes.Node{Registration: nodes.Registration{Name: name, Virtual: virtual}, Connected: true, Run: run}
	}
	set := func(h fleet.Health) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.nodes = []nodes.Node{node("client", run, false), node("idle", "", false), node("guest", run, true)}
		for _, name := range []string{"client", "idle", "guest"} {
			d.health[name] = h
		}
	}
	bad := fleet.Health{Battery: &charge, Discharging: true, Faults: []fleet.Fault{{Text: "radio0 is gone.\nPlug it in."}, {Run: run, Text: "of the run"}},
		Telemetry: []*linktrialv1.TelemetryState{{Source: "snmp", Error: "no answer"}, {Source: "fine"}}}
	set(bad)
	d.changed.Notify()
	all := d.told(2)
	require.ElementsMatch(t, []string{"radio-silent", "battery-low"}, kindsTold(all))
	for _, n := range all {
		require.Equal(t, []string{"client", run, "camp", "/runs/camp"}, []string{n.Node, n.Run, n.Campaign, n.Path})
	}
	require.ElementsMatch(t, []string{"client: radio0 is gone. Plug it in", "Battery of client at 19 %, discharging"}, d.titles())
	d.mu.Lock()
	d.skew = 31 * time.Second
	d.mu.Unlock()
	d.changed.Notify()
	require.Equal(t, "client: telemetry source snmp does not answer", d.told(3)[2].Title)

	set(fleet.Health{})
	time.Sleep(1500 * time.Millisecond)
	set(bad)
	d.n.Stop()
	d.start()
	time.Sleep(2500 * time.Millisecond)
	d.told(3)
}

// What is old is removed, and what could be told once more stays.
func TestOldNotificationsAreRemoved(t *testing.T) {
	d := newDesk(t)
	d.start()
	d.n.Stop()
	insert := func(event, age string) {
		d.sql("INSERT INTO notifications (event, kind, at, title, body, campaign_id, run_id, node, urgent, path, stored_at) SELECT $1 || i, 'run-ended', now(), 'x', '', '', '', '', false, '/', now() - $2::interval FROM generate_series(1, 6000) i", event, age)
	}
	insert("ancient/", "91 days")
	insert("old/", "3 days")
	insert("new/", "1 hour")
	d.start()
	eventually(t, "10000 are left", func() bool {
		newest, err := d.n.Newest(t.Context())
		require.NoError(t, err)
		oldest, err := d.n.After(t.Context(), 0)
		require.NoError(t, err)
		return newest-oldest[0].ID == 9999
	})
	d.n.Stop()
	insert("more/", "1 hour")
	d.start()
	eventually(t, "those of two days are left", func() bool {
		oldest, err := d.n.After(t.Context(), 0)
		require.NoError(t, err)
		newest, err := d.n.Newest(t.Context())
		require.NoError(t, err)
		return newest-oldest[0].ID == 11_999
	})
}
