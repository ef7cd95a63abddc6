package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"linktrial/executor/journal"
)

// transferID is the identity of a flow, by docs/data-format.md.
func transferID(run string, trial, attempt, flow int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d/%d", run, trial, attempt, flow))
	return hex.EncodeToString(sum[:16])
}

// checkDigests holds what clients report of their transfers against what the server
// reports.
func (a *auditor) checkDigests() {
	if !a.history.seen {
		return
	}
	c := a.check(Digests)
	rows := a.rows()
	silent := 0
	for _, x := range a.history.all {
		for i, id := range x.transfers {
			if want := transferID(a.run.ID, x.trial, x.number, i); id != want {
				c.find(x.at, "flow %d has the identity %s, expected %s", i, id, want)
			}
		}
		row := rows[key{x.trial, x.number}]
		if row == nil || row.Verdict != string(journal.Succeeded) || x.verdict != journal.Succeeded {
			continue
		}
		if n := len(a.sheet.Trials[x.trial].Flows); len(x.flows) != n {
			c.find(x.at, "it succeeded with the outcomes of %d flows, the sheet has %d", len(x.flows), n)
		}
		for i := range x.flows {
			if a.unconfirmed(x, i) {
				silent++
				continue
			}
			c.Objects++
			a.checkTransfer(c, x, i)
		}
	}
	if silent > 0 {
		c.note("%d transfers of successes are not confirmed by the server, so their attempts' values do not count", silent)
	}
}

// unconfirmed reports whether the server has no word on a flow: its attempt then does
// not count, whatever its client reports.
func (a *auditor) unconfirmed(x *attempt, i int) bool {
	return len(a.received[transferID(a.run.ID, x.trial, x.number, i)]) == 0
}

func (a *auditor) checkTransfer(c *Check, x *attempt, i int) {
	f := &x.flows[i]
	at := x.at
	of := a.sheet.Trials[x.trial].Flows
	id := transferID(a.run.ID, x.trial, x.number, i)
	if f.Transfer != id {
		c.find(at, "flow %d ended as transfer %s, expected %s", i, f.Transfer, id)
	}
	switch {
	case f.Flow != i || i >= len(of):
		c.find(at, "its outcome %d is of flow %d, the sheet has %d flows", i, f.Flow, len(of))
		return
	case f.Verdict != journal.Succeeded || f.Result == nil:
		c.find(at, "flow %d is %s without a result in an attempt that succeeded", i, f.Verdict)
		return
	}
	bound := of[i].SizeBytes
	if size := f.Result.SizeBytes; of[i].Duration == 0 && size != bound || size < 0 || size > bound {
		c.find(at, "flow %d sent %d bytes, by the sheet it has %d", i, size, bound)
	}
	if !isDigest(f.Result.Digest) {
		c.find(at, "flow %d has the SHA-256 %q, expected 64 hexadecimal digits", i, f.Result.Digest)
	}
	for _, r := range a.received[id] {
		switch {
		case !r.result:
			c.find(at, "the value counts, and the server reports %s of flow %d (node %s, record %d)", r.code, i, r.at.Node, r.at.Record)
		case r.size != f.Result.SizeBytes:
			c.find(at, "flow %d sent %d bytes, the server received %d (node %s, record %d)", i, f.Result.SizeBytes, r.size, r.at.Node, r.at.Record)
		case r.digest != f.Result.Digest:
			c.find(at, "the SHA-256 of what flow %d sent is %s, of what the server received %s (node %s, record %d)", i, f.Result.Digest, r.digest, r.at.Node, r.at.Record)
		case r.treatment != of[i].Treatment:
			c.find(at, "flow %d is of %s, the server received it as %s (node %s, record %d)", i, of[i].Treatment, r.treatment, r.at.Node, r.at.Record)
		}
	}
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size
}
