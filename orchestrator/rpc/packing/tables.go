package packing

import (
	"context"
	"fmt"
	"io"
	"strings"

	"linktrial/orchestrator/store"
)

// table says of a table of the schema whether a bag has its rows.
type table struct {
	name string
	// where selects the rows of a campaign, $1, from the table as t; empty: a bag has none.
	where, order string
	// only are the columns that a bag has; nil: all but those of without.
	only, without []string
	why           string // a bag has them, or has them not
}

const ofRuns = `t.run_id IN (SELECT r.id FROM runs r WHERE r.campaign_id = $1)`

// What follows from something else in the bag, which then is what is checked.
const (
	fromJournals = "follows from the journals"
	ofPeople     = "says who may use the orchestrator, and nothing of a campaign"
	ofFleet      = "is of the orchestrator's nodes now; provenance in the journals says what they were"
	ofMessages   = "is of what people were told and by what; journals, states and commands have what happened, and a channel has a secret"
	ofPlans      = "is of plans before they start; the campaign has its own text"
)

// tables are all of the schema. Those that a bag has come first, in the order in which they
// refer to each other.
var tables = []table{
	{name: "campaigns", where: `t.id = $1`, order: "t.id", without: []string{"plan_text"}, why: "when it was queued, and what is to be said of all its results; the text is plan.yaml"},
	{name: "nodes", where: `t.name IN (SELECT n.node FROM run_nodes n JOIN runs r ON r.id = n.run_id WHERE r.campaign_id = $1)`, order: "t.name",
		why: "others refer to them; a virtual node is in no journal as such"},
	{name: "runs", where: `t.campaign_id = $1`, order: "t.cell", without: []string{"sheet"}, why: "states and times are the orchestrator's; the sheet is sheet.json"},
	{name: "run_nodes", where: ofRuns, order: "t.run_id, t.role",
		// Late records are in no journal of a bag, which ends with its end.
		only: []string{"run_id", "role", "node", "delivered_at", "late_records", "late_bytes"}, why: "which node has which role; its end, provenance and counts follow from its journal"},
	{name: "contact_losses", where: ofRuns, order: "t.run_id, t.node, t.lost_at", why: "the orchestrator saw them, and no node could tell"},
	{name: "sample_spans", where: ofRuns + ` AND t.dropped_at IS NOT NULL`, order: "t.run_id", why: "since when the samples of a run are gone; of others it follows from the journals"},
	{name: "run_signatures", where: ofRuns, order: "t.run_id", why: "who vouches for a sheet; sheet.signature.json has the same"},
	{name: "report_words", where: `t.campaign_id = $1`, order: "t.version", why: "what the director wrote, with who and when; the report shows the newest"},
	{name: "run_commands", where: ofRuns, order: "t.ordinal", why: "who asked for what, and when; journals have what came of it"},
	{name: "attempts", where: ofRuns + ` AND t.common_window IS NOT NULL AND EXISTS (SELECT FROM sample_spans p WHERE p.run_id = t.run_id AND p.dropped_at IS NOT NULL)`,
		order: "t.run_id, t.trial, t.attempt", only: []string{"run_id", "trial", "attempt", "common_window"},
		why: "common windows were made of samples that are deleted; all else follows from the journals"},
	{name: "attempt_marks", where: ofRuns, order: "t.ordinal", why: "whose values count not, by whom and why"},

	{name: "trials", why: "follows from the run sheets, and verdicts from the journals"},
	{name: "journal", why: "journal.jsonl is the same as the node wrote it"},
	{name: "journal_pages", why: "journal.jsonl is made of them"},
	{name: "flows", why: fromJournals},
	{name: "receptions", why: fromJournals},
	{name: "probes", why: fromJournals},
	{name: "probe_receptions", why: fromJournals},
	{name: "listeners", why: fromJournals},
	{name: "clock_offsets", why: fromJournals},
	{name: "telemetry", why: fromJournals},
	{name: "samples", why: fromJournals},
	{name: "imports", why: "is of other orchestrators' campaigns, which are not packed"},
	{name: "saved_plans", why: ofPlans},
	{name: "recurrences", why: ofPlans},
	{name: "schedules", why: ofPlans},
	{name: "conformance", why: "is of drivers as they were checked last; no result depends on it"},
	{name: "preflights", why: "is of the time before runs; no result depends on it"},
	{name: "preflight_checks", why: "is of the time before runs; no result depends on it"},
	{name: "preflight_treatments", why: "says which treatments can be run; what was missing is in the run sheets"},
	{name: "links", why: ofFleet},
	{name: "node_tokens", why: ofFleet},
	{name: "node_certificates", why: "certificate.pem is the one whose key signed a journal"},
	{name: "driver_approvals", why: "the digests that were accepted are in the run sheets"},
	{name: "notifications", why: ofMessages},
	{name: "notification_begin", why: ofMessages},
	{name: "notification_channels", why: ofMessages},
	{name: "notification_deliveries", why: ofMessages},
	{name: "users", why: ofPeople},
	{name: "provider_accounts", why: ofPeople},
	{name: "second_factors", why: ofPeople},
	{name: "recovery_codes", why: ofPeople},
	{name: "sessions", why: ofPeople},
	{name: "api_tokens", why: ofPeople},
	{name: "audit", why: "is of all that people did; commands and marks say who gave them"},
	{name: "audit_heads", why: "is of all that people did; commands and marks say who gave them"},
}

// query asks for the rows as JSON. Names of tables and columns are those above.
func (t *table) query() string {
	row := "to_jsonb(t)"
	switch {
	case t.only != nil:
		row = "jsonb_build_object("
		for i, c := range t.only {
			if i > 0 {
				row += ", "
			}
			row += fmt.Sprintf("'%s', t.%s", c, c)
		}
		row += ")"
	case t.without != nil:
		row += " - '{" + strings.Join(t.without, ",") + "}'::text[]"
	}
	return fmt.Sprintf("SELECT (%s)::text FROM %s t WHERE %s ORDER BY %s", row, t.name, t.where, t.order)
}

// write writes the rows of a campaign, one a line. Moments are in the time zone of tx.
func (t *table) write(ctx context.Context, tx store.Conn, campaign string, to io.Writer) error {
	rows, err := tx.Query(ctx, t.query(), campaign)
	if err != nil {
		return fmt.Errorf("rows of %s: %w", t.name, err)
	}
	defer rows.Close()
	var line []byte
	for rows.Next() {
		if err := rows.Scan(&line); err != nil {
			return fmt.Errorf("rows of %s: %w", t.name, err)
		}
		if _, err := to.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return rows.Err()
}
