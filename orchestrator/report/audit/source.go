package audit

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"linktrial/executor/journal"
)

// source is what there is of one node's journal: its file, the store's records, or
// both.
type source struct {
	part *Part    // nil: the store knows of no such node in the run
	file *Journal // nil: none was given
	node string
	role string

	records  int64 // read
	last     int64 // the highest number
	ended    bool
	lastType string
	unknown  map[string]int // records of types that are not known here
	clock    nodeClock
}

// entry is one record as the checks get it.
type entry struct {
	seq  int64
	at   time.Time
	kind string
	body []byte
}

// where places a finding at a record.
func (s *source) where(seq int64) Finding {
	f := Finding{Node: s.node, Record: seq}
	if s.file != nil {
		f.File = s.file.Path
	}
	return f
}

// pair brings files and the store's journals together by the nodes' names.
func (a *auditor) pair() error {
	byNode := map[string]*source{}
	for i := range a.run.Parts {
		p := &a.run.Parts[i]
		s := &source{part: p, node: p.Node, role: p.Role}
		byNode[p.Node] = s
		a.sources = append(a.sources, s)
	}
	var empty []string
	for i := range a.run.Journals {
		j := &a.run.Journals[i]
		node, lines, err := nodeOf(j)
		if err != nil {
			return err
		}
		s := byNode[node]
		switch {
		case lines == 0: // the run was interrupted before its node wrote anything
			empty = append(empty, j.Path)
			continue
		case s == nil:
			a.check(Stored).find(Finding{File: j.Path}, "a journal of node %q, which has no part in the run by the store", node)
			continue
		case s.file != nil:
			a.check(Stored).find(Finding{File: j.Path}, "a second journal of node %s in this run; the other one is %s", node, s.file.Path)
			continue
		}
		s.file = j
	}
	for _, s := range a.sources {
		if s.file != nil {
			continue
		}
		if len(empty) > 0 && s.part.Committed > 0 {
			a.check(Stored).find(Finding{Node: s.node}, "the store has %d records of it, and the journals that were given without a record are %s", s.part.Committed, strings.Join(empty, ", "))
		}
		a.check(Stored).skip("no journal of node %s (%s) was given", s.node, s.role)
		a.check(Integrity).skip("no journal of node %s (%s) was given: the store has no checksums of lines", s.node, s.role)
	}
	return nil
}

// nodeOf is the node of a journal's first record that can be read, and how many lines
// were read until then.
func nodeOf(j *Journal) (node string, lines int, err error) {
	f, err := j.Open()
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	err = readLines(f, func(l line) error {
		lines++
		var r struct{ Node string }
		if l.fault != "" || json.Unmarshal(l.record, &r) != nil {
			return nil
		}
		node = r.Node
		return io.EOF
	})
	if err != nil && !errors.Is(err, io.EOF) {
		return "", 0, fmt.Errorf("%s: %w", j.Path, err)
	}
	return node, lines, nil
}

// read walks through a node's journal, and holds it against the store's where both
// are there.
func (a *auditor) read(s *source) error {
	s.unknown = map[string]int{}
	if s.file == nil {
		for r, err := range a.run.Records(s.node, true) {
			if err != nil {
				return err
			}
			a.takeStored(s, &r)
		}
		return nil
	}
	next, stop := iter.Pull2(a.run.Records(s.node, false))
	defer stop()
	m := &merge{c: a.check(Stored), s: s, next: next}
	f, err := s.file.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := readLines(f, func(l line) error { return a.takeLine(s, m, l) }); err != nil {
		return fmt.Errorf("%s: %w", s.file.Path, err)
	}
	return m.rest()
}

// takeStored takes a record of the store in place of the journal's own.
func (a *auditor) takeStored(s *source, r *StoredRecord) {
	c := a.check(Integrity)
	s.records++
	if r.Seq != s.last+1 {
		c.find(s.where(r.Seq), "record %d of the store follows record %d", r.Seq, s.last)
	}
	s.last, s.lastType = r.Seq, r.Type
	if r.Type == typeRefused {
		a.check(Stored).find(s.where(r.Seq), "the store could not take the record: %s", refusal(r.Body))
		return
	}
	if r.Type == typeLate {
		a.check(Integrity).find(s.where(r.Seq), "the record came after the end of the node's journal; it counts nowhere")
		return
	}
	a.addRecord(s, entry{seq: r.Seq, at: r.At, kind: r.Type, body: r.Body})
}

// typeRefused is the store's type of a record that it could not take.
const typeRefused = "refused"

// typeLate is the store's type of a record that came after the end of its journal.
const typeLate = "late"

func refusal(body []byte) string {
	var r struct{ Reason string }
	_ = json.Unmarshal(body, &r) // an empty reason says as much
	return r.Reason
}

func (a *auditor) takeLine(s *source, m *merge, l line) error {
	c := a.check(Integrity)
	at := s.where(0)
	if l.fault != "" {
		if l.torn && !a.run.Ended() {
			c.note("%s: line %d: %s; the agent cuts that off when it starts", s.file.Path, l.number, l.fault)
			return nil
		}
		c.find(at, "line %d (offset %d): %s", l.number, l.offset, l.fault)
		return nil
	}
	var r journal.Record
	if err := json.Unmarshal(l.record, &r); err != nil {
		c.find(at, "line %d (offset %d): no journal record: %s", l.number, l.offset, err)
		return nil
	}
	s.records++
	c.Objects++
	at.Record = r.Seq
	switch {
	case r.Seq != s.last+1:
		c.find(at, "line %d (offset %d) has record %d, expected record %d", l.number, l.offset, r.Seq, s.last+1)
	case r.Run != a.run.ID || r.Node != s.node || string(r.Role) != s.role:
		c.find(at, "it is of run %s, node %s, role %s; expected run %s, node %s, role %s", r.Run, r.Node, r.Role, a.run.ID, s.node, s.role)
	}
	s.last, s.lastType = r.Seq, string(r.Type)
	if err := m.line(&r, sha256.Sum256(l.record)); err != nil {
		return err
	}
	a.addRecord(s, entry{seq: r.Seq, at: r.At, kind: string(r.Type), body: r.Body})
	return nil
}

// merge holds a file's records against the store's, both in the order of their
// numbers.
type merge struct {
	c    *Check
	s    *source
	next func() (StoredRecord, error, bool)

	held    StoredRecord // read from the store, and not compared yet
	has     bool
	at      int64 // the last number of the file
	drained bool
}

func (m *merge) advance() error {
	if m.has || m.drained {
		return nil
	}
	r, err, ok := m.next()
	if err != nil {
		return err
	}
	m.held, m.has, m.drained = r, ok, !ok
	return nil
}

// missing reports a record of the store that the file does not have.
func (m *merge) missing() {
	m.c.find(m.s.where(m.held.Seq), "the store has the record (%s), the node's journal has not", m.held.Type)
	m.has = false
}

func (m *merge) line(r *journal.Record, sum [32]byte) error {
	m.c.Objects++
	for {
		if err := m.advance(); err != nil {
			return err
		}
		if !m.has || m.held.Seq >= r.Seq {
			break
		}
		m.missing()
	}
	at := m.s.where(r.Seq)
	switch {
	case r.Seq <= m.at:
		m.c.find(at, "the node's journal has a second record of the number, of type %s", r.Type)
	case !m.has || m.held.Seq > r.Seq:
		m.c.find(at, "the store does not have the record (%s)", r.Type)
	case m.held.Type == typeLate:
		m.has = false // the check of the journal itself has the finding
	case m.held.Type == typeRefused:
		m.c.find(at, "the store could not take the record (%s): linktrial results show nothing of it", r.Type)
		m.has = false
	default:
		m.compare(at, r, sum)
		m.has = false
	}
	m.at = max(m.at, r.Seq)
	return nil
}

func (m *merge) compare(at Finding, r *journal.Record, sum [32]byte) {
	switch {
	case m.held.SHA256 != sum:
		m.c.find(at, "the store has another record: its SHA-256 is %x, that of the node's is %x", m.held.SHA256, sum)
	case m.held.Type != string(r.Type):
		m.c.find(at, "the store has it as %s, the node as %s", m.held.Type, r.Type)
	case m.held.At.Sub(r.At).Abs() > time.Microsecond: // PostgreSQL rounds to microseconds
		m.c.find(at, "the store has its time as %s, the node as %s", m.held.At.UTC().Format(time.RFC3339Nano), r.At.Format(time.RFC3339Nano))
	}
}

// rest reports what the store has beyond the file's end.
func (m *merge) rest() error {
	for {
		if err := m.advance(); err != nil || !m.has {
			return err
		}
		m.missing()
	}
}
