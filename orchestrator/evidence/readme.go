package evidence

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"

	"linktrial/internal/sshsig"
	"linktrial/internal/unit"
)

// line is a text of people or nodes as one line, without control characters.
func line(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)), " ")
}

// readme says what the bag is and how to check it without Linktrial.
func readme(x *Bundle) string {
	e := &x.Evidence
	b := &strings.Builder{}
	fmt.Fprintf(b, "Evidence of a Linktrial campaign\n================================\n\nCampaign %s (%s), plan %s.\nPacked at %s by Linktrial %s.\n", e.Campaign, line(x.Name), line(e.Plan), unit.Moment(e.Packed), line(e.Version))
	if !e.Complete {
		b.WriteString("\nNOT COMPLETE: a run was under way when this was packed. Journals and results end where they were then.\n")
	}
	b.WriteString(`
What is here
------------

data/plan.yaml       the plan as its director wrote it
data/runs/           of each run its sheet, and each node's journal as the node wrote it
data/store/          what does not follow from journals: commands and marks with who and when
data/results/        the exported files, and the report
data/drivers/, data/catalog/
                     drivers' manifests, radio profiles and topologies, as the orchestrator
                     had them when this was packed
data/trust/          the keys that signed the run sheets, and the authority's certificate
data/evidence.json   all of it, for programs
data/ro-crate-metadata.json
                     the same, as RO-Crate 1.1
`)
	writeMissing(b, e)
	writeChecks(b, x)
	return b.String()
}

func writeMissing(b *strings.Builder, e *Evidence) {
	if len(e.Missing) == 0 {
		return
	}
	b.WriteString("\nWhat is missing\n---------------\n\n")
	for _, m := range e.Missing {
		fmt.Fprintf(b, "- %s\n", line(m))
	}
}

// writeChecks says how to check the bag, with the commands to type in its folder.
func writeChecks(b *strings.Builder, x *Bundle) {
	b.WriteString(`
How to check it
---------------

Unzip the file, and type these in the folder that has this README.

That no file was changed:

  sha256sum --quiet -c tagmanifest-sha256.txt
  sha256sum --quiet -c manifest-sha256.txt

That the orchestrator signed it:

`)
	fmt.Fprintf(b, "  ssh-keygen -Y verify -f %s -I %s -n %s -s %s < %s\n", Signers, orchestrator, sshsig.Evidence, TagSignature, TagManifest)
	if run, node := x.firstSigned(); run != "" {
		b.WriteString("\nThat a node signed its journal (others likewise), and which journal that is: the\nstatement has its SHA-256:\n\n")
		fmt.Fprintf(b, "  ssh-keygen -Y verify -f %s -I %s -n %s -s %s < %s\n", Signers, node.Name, sshsig.Journal, StatementSignatureFile(run, node.Name), StatementFile(run, node.Name))
		if node.SamplesDeleted {
			fmt.Fprintf(b, "\nThe samples of this run were deleted: its statement holds for the digests of the\nrecords (records_sha256), which are in %s.\n", RecordDigests(run, node.Name))
		} else {
			fmt.Fprintf(b, "  sha256sum %s\n", JournalFile(run, node.Name))
		}
	}
	fmt.Fprintf(b, `
Where trust comes from
----------------------

A signature proves who signed only to those who know the key. Compare it with what the
orchestrator shows ('linktrial signing keys' prints the key, packing its fingerprint), over
another way than the one on which this file came:

  key of the orchestrator
      %s
  its fingerprint
      %s
  the same as ssh-keygen shows it
      %s

Keys of nodes are in their certificates (certificate.pem beside each journal), which the
authority in data/trust/authority.pem has signed. Whoever has Linktrial checks all of this,
and makes the results again from the journals:

  linktrial evidence verify FILE.zip
`, x.Shown, x.Fingerprint, ssh.FingerprintSHA256(x.Key))
}

// firstSigned is the first journal that its node signed; no run: none is.
func (x *Bundle) firstSigned() (run string, node Node) {
	for _, r := range x.Evidence.Runs {
		for _, n := range r.Nodes {
			if n.Unsigned == "" {
				return r.ID, n
			}
		}
	}
	return "", Node{}
}
