package evidence

import (
	"fmt"
	"path"

	"linktrial/internal/identity"
)

// unnamed are files that the index does not name and a bag may have.
var unnamed = []string{
	Declaration, Info, Manifest, TagManifest, TagSignature, Signers, ReadMe, Crate, Index,
	Authority, SigningKeys, EndorsedKeys,
	Drivers + "/*/driver.yaml", Catalog + "/radio-profiles/*.yaml", Catalog + "/topologies/*.yaml",
}

// checkContents holds the bag's files against the index.
func (c *checker) checkContents() error {
	x, e := c.check(CheckContents), c.bag.Index
	named := map[string]bool{}
	expect := func(name, why string) {
		named[name] = true
		if !c.bag.Has(name) {
			x.find(name, "the bag does not have it: %s", why)
		}
	}
	for _, name := range []string{Declaration, Info, Signers, ReadMe, Crate, Plan} {
		expect(name, "each bag has one")
	}
	for i := range e.Runs {
		c.expectRun(&e.Runs[i], expect, func(name string) { named[name] = true })
	}
	for _, t := range e.Tables {
		expect(path.Join(Rows, t+".jsonl"), "the index names the table")
	}
	for _, f := range e.Exports {
		expect(path.Join(Results, f.File), "the index names the exported file")
	}
	for _, name := range c.bag.names {
		x.Objects++
		if !named[name] && !mayHave(name) {
			x.find(name, "the bag has it, and the index does not name it")
		}
	}
	if !e.Complete {
		x.skip("a run was under way when the bag was packed")
	}
	for _, m := range e.Missing {
		x.skip("by the index: %s", m)
	}
	return nil
}

// expectRun says which files of a run the bag has to have, and which it may have.
func (c *checker) expectRun(r *Run, expect func(name, why string), may func(name string)) {
	expect(SheetFile(r.ID), "the index names the run")
	if may(SheetSignatureFile(r.ID)); r.SheetKey != "" {
		expect(SheetSignatureFile(r.ID), "by the index the sheet is signed by key "+r.SheetKey)
		expect(SigningKeys, "a sheet is signed")
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if may(JournalFile(r.ID, n.Name)); n.Records > 0 {
			expect(JournalFile(r.ID, n.Name), fmt.Sprintf("the index has %d records of it", n.Records))
		}
		if may(RecordDigests(r.ID, n.Name)); n.SamplesDeleted {
			expect(RecordDigests(r.ID, n.Name), "by the index the samples of the run were deleted")
		}
		statement := []string{StatementFile(r.ID, n.Name), StatementSignatureFile(r.ID, n.Name), CertificateFile(r.ID, n.Name)}
		signed := n.Unsigned == ""
		for _, name := range statement {
			if may(name); c.bag.Has(name) {
				signed = true // of a statement all three are there
			}
		}
		if !signed {
			continue
		}
		for _, name := range statement {
			expect(name, "by the index the journal is signed")
		}
		expect(Authority, "a journal is signed")
	}
}

func mayHave(name string) bool {
	for _, pattern := range unnamed {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}

// means says what the signatures prove, and what they do not.
func (c *checker) means() []string {
	var out []string
	s := c.verdict.SignedBy()
	switch {
	case s == nil:
		out = append(out, "No signature that holds says who packed the bag: anybody can have made it.")
	case s.Known:
		out = append(out, fmt.Sprintf("The bag is as the orchestrator with key %s packed it, by a key that is trusted on this machine.", s.Key))
	default:
		out = append(out, fmt.Sprintf("The bag is as somebody with key %s packed it. Whose key that is, nobody has compared on this machine: anybody can make one.", s.Key))
	}
	journals, known := 0, 0
	for _, x := range c.verdict.Signed {
		if x.By == "orchestrator" {
			continue
		}
		if journals++; x.Known {
			known++
		}
	}
	if journals == 0 {
		return append(out, "No node's signature holds: that the journals are as the nodes wrote them, the orchestrator alone says.")
	}
	out = append(out, fmt.Sprintf("%d journals are as their nodes signed them at the end of the run; nobody can have changed them since, the orchestrator included.", journals))
	if known < journals {
		for _, a := range c.authority {
			if !c.knowsAuthority(a) {
				out = append(out, fmt.Sprintf("That these keys are the nodes' says the authority with the fingerprint %s, which this machine does not know.", identity.FormatFingerprint(identity.Fingerprint(a))))
			}
		}
	}
	return append(out, "Whether a certificate had been revoked when its node signed cannot be seen in a bag.")
}
