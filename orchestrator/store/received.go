package store

import (
	"time"

	"linktrial/executor/credible"
	"linktrial/executor/journal"
	"linktrial/orchestrator/store/storedb"
)

// Receptions is what servers report of transfers.
type Receptions map[receptionKey]*credible.End

type receptionKey struct{ run, transfer string }

// Received gathers a run's or several runs' receptions, which come in the order
// of their records. Of several of one transfer, the last result holds; an error
// holds only where there is none, and a rule that the server's values broke always.
func Received(rows []storedb.Reception) Receptions {
	out := Receptions{}
	for i := range rows {
		r := &rows[i]
		if r.Transfer == nil {
			continue
		}
		key := receptionKey{r.RunID, *r.Transfer}
		if before := out[key]; before != nil && (r.Digest == nil && before.Code == "" && !journal.FalseValue(r.Code) || journal.FalseValue(before.Code)) {
			continue
		}
		end := &credible.End{Code: r.Code, Message: r.Message}
		if r.Digest != nil && r.SizeBytes != nil && r.ElapsedNs != nil {
			end = &credible.End{SizeBytes: *r.SizeBytes, Elapsed: time.Duration(*r.ElapsedNs), Digest: *r.Digest}
			if r.PacketsNs != nil {
				end.Packets = time.Duration(*r.PacketsNs)
			}
		}
		out[key] = end
	}
	return out
}

// NewFlow is a flow with what the server reports of it.
func NewFlow(f storedb.Flow, received Receptions) Flow {
	x := Flow{Flow: f, received: received[receptionKey{f.RunID, f.Transfer}]}
	if x.received != nil {
		x.ReceivedDigest = x.received.Digest
	}
	return x
}

// contradiction is why the server's report excludes a success of the client; nil
// where it does not, or has not arrived.
func contradiction(flows []Flow) *credible.Fault {
	for i := range flows {
		f := &flows[i]
		if f.received == nil || f.Verdict == nil || *f.Verdict != string(journal.Succeeded) || f.SizeBytes == nil || f.ElapsedNs == nil || f.Digest == nil {
			continue
		}
		client := credible.End{SizeBytes: *f.SizeBytes, Elapsed: time.Duration(*f.ElapsedNs), Digest: *f.Digest}
		if wrong := credible.Ends(&client, f.received); wrong != nil {
			return wrong
		}
	}
	return nil
}
