package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"linktrial/executor/journal"
)

// readJournal is what was read of a journal.
type readJournal struct {
	run  *Run
	node *Node
	file string
	// whole is set where all records are in the bag; else SHA256 and Bytes are not known.
	whole bool
	// digests is set where the journal can be held against a statement.
	digests *journal.Statement

	sums    *journal.Digests
	all     *recordDigests // nil: there is no file with the digests of all records
	last    journal.Record
	from    int64 // [checker].read before it
	records int64 // that are in the bag
	ended   journal.RunEnd
}

// checkNodes checks each node's journal, and what it signed of it.
func (c *checker) checkNodes() error {
	c.journals, c.nodeKeys = map[string]bool{}, map[string]map[string]bool{}
	for i := range c.bag.Index.Runs {
		r := &c.bag.Index.Runs[i]
		for k := range r.Nodes {
			j := &readJournal{run: r, node: &r.Nodes[k], file: JournalFile(r.ID, r.Nodes[k].Name), sums: journal.NewDigests()}
			if err := c.doing(j.file); err != nil {
				return err
			}
			if c.bag.Has(j.file) {
				if err := c.checkJournal(j); err != nil {
					return err
				}
			}
			if !c.bag.Has(j.file) && j.node.NotKept > 0 {
				c.absent.Add(r.ID, j.node.Name, "the records are not in the bag: records.sha256 has their digests alone")
			}
			c.checkStatement(j)
		}
	}
	c.absent.Each(func(journals string, _ bool, why string) { c.check(CheckJournals).skip("%s: %s", journals, why) })
	c.unsigned.Each(func(journals string, several bool, why string) {
		verb := "is"
		if several {
			verb = "are"
		}
		c.check(CheckStatements).skip("%s %s not signed: %s", journals, verb, why)
	})
	return nil
}

// checkJournal reads a journal. The error is the context's alone.
func (c *checker) checkJournal(j *readJournal) error {
	if _, _, ok := c.bag.digestOf(j.file); !ok {
		return nil // the check of the bag has the finding
	}
	digests := RecordDigests(j.run.ID, j.node.Name)
	if c.bag.Has(digests) {
		in, err := c.bag.Open(digests)
		if err != nil {
			c.wrong(digests, err)
			return nil
		}
		defer func() { _ = in.Close() }() // only read
		j.all = newRecordDigests(in)
	}
	j.from = c.read
	in, err := c.bag.Open(j.file)
	if err == nil {
		err = c.readRecords(j, newLines(&counted{c, in}, journalLine))
		_ = in.Close() // only read
	}
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	c.journals[j.file] = true
	if c.failed(j, j.file, err) {
		return nil
	}
	if j.all != nil {
		if err = j.all.to(1 << 62); !errors.Is(err, io.EOF) && c.failed(j, digests, err) {
			return nil
		}
	}
	c.endJournal(j)
	return nil
}

// failed adds the finding of a journal that could not be read to its end. What is wrong with a
// line is another finding than that the file was changed, which the rest of it shows.
func (c *checker) failed(j *readJournal, name string, err error) bool {
	var damage *lineError
	switch {
	case err == nil:
		return false
	case errors.As(err, &damage):
		c.check(CheckJournals).find(name, "%s", damage)
		c.read = j.from         // the rest is read from the start again
		_ = c.readThrough(name) // the context is asked after each file
	default:
		c.wrong(name, err)
	}
	return true
}

func (c *checker) readRecords(j *readJournal, lines *lineReader) error {
	x := c.check(CheckJournals)
	for {
		text, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		record, err := lines.record(text)
		if err != nil {
			return err
		}
		seq := j.last.Seq
		j.last = journal.Record{}
		if err := json.Unmarshal(record, &j.last); err != nil {
			return &lineError{lines.n, "it is no record of a journal: " + err.Error()}
		}
		x.Objects++
		j.records++
		j.sums.Add(record)
		if err := c.checkRecord(j, lines.n, seq, record); err != nil {
			return err
		}
	}
}

// checkRecord checks a record's number and identity; before is the number of the one before
// it. The error is of the file with the digests of all records.
func (c *checker) checkRecord(j *readJournal, n, before int64, record []byte) error {
	x, r := c.check(CheckJournals), &j.last
	switch {
	case r.Seq <= before || r.Seq != before+1 && j.all == nil:
		return &lineError{n, fmt.Sprintf("record %d follows record %d", r.Seq, before)}
	case r.Run != j.run.ID || r.Node != j.node.Name || string(r.Role) != j.node.Role:
		return &lineError{n, fmt.Sprintf("record %d is of run %.64q, node %.64q, role %.16q; expected run %s, node %s, role %s", r.Seq, r.Run, r.Node, r.Role, j.run.ID, j.node.Name, j.node.Role)}
	case j.ended != "":
		return &lineError{n, fmt.Sprintf("record %d (%s) follows the end of the journal", r.Seq, r.Type)}
	}
	if j.all != nil {
		digests := RecordDigests(j.run.ID, j.node.Name)
		if err := j.all.to(r.Seq); err != nil {
			x.find(digests, "it has no digest of record %d: %s", r.Seq, err)
			return &lineError{n, fmt.Sprintf("record %d cannot be held against %s", r.Seq, digests)}
		}
		if sum := sha256.Sum256(record); sum != j.all.last {
			return &lineError{n, fmt.Sprintf("record %d was changed: its SHA-256 is %x, by %s it is %x", r.Seq, sum, digests, j.all.last)}
		}
	}
	switch r.Type {
	case journal.TypeRunStarted, journal.TypeRunResumed:
		var b journal.RunStarted
		if err := json.Unmarshal(r.Body, &b); err != nil || b.SheetHash != j.run.SheetHash {
			return &lineError{n, fmt.Sprintf("record %d: the node ran the sheet %.64q, the run's is %s", r.Seq, b.SheetHash, j.run.SheetHash)}
		}
	case journal.TypeRunEnded:
		var b journal.RunEnded
		if err := json.Unmarshal(r.Body, &b); err != nil || b.End == "" {
			return &lineError{n, fmt.Sprintf("record %d says of no end how it was", r.Seq)}
		}
		j.ended = b.End
	}
	return nil
}

// endJournal holds a journal that was read against the index.
func (c *checker) endJournal(j *readJournal) {
	x := c.check(CheckJournals)
	if j.records != j.node.Records {
		x.find(j.file, "it has %d records, the index has %d", j.records, j.node.Records)
	}
	// Where the last record is not in the bag, nothing says how the journal ended.
	if last := j.all == nil || j.all.n == j.last.Seq; last && string(j.ended) != j.node.Ended {
		x.find(j.file, "by its last record it ended as %q, by the index as %q", j.ended, j.node.Ended)
	}
	j.digests, j.whole = &journal.Statement{}, true
	j.sums.Set(j.digests)
	if j.all == nil {
		return
	}
	missing := j.all.n - j.records
	if j.whole = missing == 0; !j.whole {
		j.digests = &journal.Statement{Records: j.all.n, RecordsSHA256: hex.EncodeToString(j.all.sum.Sum(nil))}
		c.absent.Add(j.run.ID, j.node.Name, "some records are not in the bag: of these records.sha256 beside it has the digests alone")
	}
}
