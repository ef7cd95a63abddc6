package packing

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"iter"

	"golang.org/x/crypto/ssh"

	"linktrial/executor/journal"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/store"
)

// What a store has of journals.
type (
	KeptRecord = store.KeptRecord
	Signed     = store.Signed
)

const (
	SamplesDeleted = store.SamplesDeleted
	NotKept        = store.NotKept
)

// Journals reads what nodes wrote and signed.
type Journals interface {
	// JournalRecords has a node's journal of a run up to its end, in order and without gaps.
	JournalRecords(ctx context.Context, run, node string) iter.Seq2[KeptRecord, error]
	Statement(ctx context.Context, run, node string) (*Signed, error)
}

// written counts the records of a journal.
type written struct {
	all, kept, deleted, notKept int64
	over                        bool // the run-ended was among them
}

// count takes one more record.
func (w *written) count(r *KeptRecord) {
	w.all++
	switch {
	case r.JSON != nil:
		w.kept++
		w.over = isEnd(r.JSON)
	case r.Absent == SamplesDeleted:
		w.deleted++
	default:
		w.notKept++
	}
}

// isEnd reports whether a record is the one that ends a journal.
func isEnd(record []byte) bool {
	if !bytes.Contains(record, []byte(journal.TypeRunEnded)) { // few have it; large ones are not decoded
		return false
	}
	var r struct {
		Type journal.Type `json:"type"`
	}
	return json.Unmarshal(record, &r) == nil && r.Type == journal.TypeRunEnded
}

// journal packs a node's journal of a run, and returns what evidence.json says of it. What is
// not there goes into the list of what is missing.
func (g *gathering) journal(ctx context.Context, run *store.RunOverview, n *store.RunNode) (evidence.Node, error) {
	out := evidence.Node{Name: n.Node, Role: n.Role}
	if n.Ended != nil {
		out.Ended = *n.Ended
	}
	w, err := g.records(ctx, run.ID, n.Node)
	if err != nil {
		return out, err
	}
	out.Records, out.SamplesDeleted, out.NotKept = w.kept, w.deleted > 0, w.notKept
	if w.all > 0 {
		g.journals++
	}
	of := fmt.Sprintf("of node %s of run %s", n.Node, run.ID)
	switch {
	case w.all == 0 && run.StartedAt != nil:
		g.miss("the journal %s: nothing of it is stored", of)
	case w.deleted > 0:
		g.deleted.Add(run.ID, n.Node, "they were deleted because they were old; the digests of all records are in records.sha256")
	}
	if w.notKept > 0 {
		what := "some"
		if w.notKept == w.all {
			what = "all"
		}
		g.notKept.Add(run.ID, n.Node, what+" of them were stored by a version of Linktrial that kept no records as they were written; the digests of all records are in records.sha256")
	}
	if w.all > 0 && n.Ended == nil {
		g.miss("the end of the journal %s: %d records are stored, and its end is not", of, w.all)
	}
	out.Unsigned, err = g.statement(ctx, run.ID, n)
	if err == nil && out.Unsigned != "" && w.all > 0 {
		g.unsigned.Add(run.ID, n.Node, out.Unsigned)
	}
	return out, err
}

// records writes a journal up to its end, as a file of the node has it, and the digests of its
// records where some are not kept. No more than a record is held.
func (g *gathering) records(ctx context.Context, run, node string) (w written, err error) {
	next, stop := iter.Pull2(g.cfg.Journals.JournalRecords(ctx, run, node))
	defer stop()
	step := func() (r KeptRecord, ok bool, err error) {
		if w.over {
			return r, false, nil
		}
		if r, err, ok = next(); ok && err == nil {
			w.count(&r)
		}
		return r, ok, err
	}
	r, ok, err := step()
	for ok && err == nil && r.JSON == nil { // there is no file before something is in it
		r, ok, err = step()
	}
	if ok && err == nil {
		err = g.bag.Add(evidence.JournalFile(run, node), "The journal of node "+node+" of run "+run, func(to io.Writer) error {
			var line []byte
			for ; ok && err == nil; r, ok, err = step() {
				if r.JSON == nil {
					continue
				}
				line = journal.AppendLine(line[:0], r.JSON)
				if _, err := to.Write(line); err != nil {
					return err
				}
			}
			return err
		})
	}
	if err == nil && w.kept < w.all {
		err = g.digests(ctx, run, node, w.all)
	}
	return w, err
}

// digests writes the digests of so many records of a journal.
func (g *gathering) digests(ctx context.Context, run, node string, records int64) error {
	return g.bag.Add(evidence.RecordDigests(run, node), "The SHA-256 of each record of that journal", func(to io.Writer) error {
		for r, err := range g.cfg.Journals.JournalRecords(ctx, run, node) {
			if err != nil {
				return err
			}
			if records--; records < 0 { // more came meanwhile
				return nil
			}
			if _, err := fmt.Fprintln(to, hex.EncodeToString(r.SHA256[:])); err != nil {
				return err
			}
		}
		return nil
	})
}

// statement packs what a node signed, and returns why it signed nothing.
func (g *gathering) statement(ctx context.Context, run string, n *store.RunNode) (unsigned string, err error) {
	s, err := g.cfg.Journals.Statement(ctx, run, n.Node)
	switch {
	case err != nil:
		return "", err
	case s.Statement == nil && s.Unsigned != "":
		return s.Unsigned, nil
	case s.Statement == nil && n.Ended == nil:
		return "the journal has not ended", nil
	case s.Statement == nil:
		return "the node signed nothing: it had no certificate, as nodes of a lab have none, or its program is older than these signatures", nil
	}
	cert, err := x509.ParseCertificate(s.Certificate)
	if err != nil {
		return "", fmt.Errorf("certificate of node %s: %w", n.Node, err)
	}
	key, err := ssh.NewPublicKey(cert.PublicKey)
	if err != nil {
		return "", fmt.Errorf("certificate of node %s: %w", n.Node, err)
	}
	g.signer(n.Node, key)
	g.signed++
	for _, f := range []struct {
		name, title string
		content     []byte
	}{
		{evidence.StatementFile(run, n.Node), "What the node signed of that journal", s.Statement},
		{evidence.StatementSignatureFile(run, n.Node), "The node's signature of that statement", []byte(s.Signature)},
		{evidence.CertificateFile(run, n.Node), "The certificate of the key that signed it", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate})},
	} {
		if err := g.bag.AddBytes(f.name, f.title, f.content); err != nil {
			return "", err
		}
	}
	return "", nil
}

// signer notes a key with which a node signed, once.
func (g *gathering) signer(node string, key ssh.PublicKey) {
	for _, s := range g.bundle.Signers {
		if s.Node == node && bytes.Equal(s.Key.Marshal(), key.Marshal()) {
			return
		}
	}
	g.bundle.Signers = append(g.bundle.Signers, evidence.Signer{Node: node, Key: key})
}
