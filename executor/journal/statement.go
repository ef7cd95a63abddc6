package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"time"

	"linktrial/internal/radio"
)

// StatementKind is of a [Statement], and says which fields it has.
const StatementKind = "linktrial journal v1"

// MaxStatement bounds an encoded statement, in bytes.
const MaxStatement = 4 << 10

// Statement is what a node signs of its journal of a run once it has ended
// (docs/evidence.md): with it, nobody can change what the node wrote, the orchestrator
// included. It is signed as it is encoded, by the key of the node's certificate
// (internal/sshsig, namespace linktrial-journal).
type Statement struct {
	Kind string     `json:"kind"`
	Run  string     `json:"run"`
	Node string     `json:"node"`
	Role radio.Role `json:"role"`
	// SheetHash is of the run sheet that the node ran.
	SheetHash string `json:"sheet_hash"`
	// Records is how many records the journal has up to its run-ended, which is the last that
	// counts, and Bytes how long the file is up to there.
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	// SHA256 is of these bytes of the file, in hexadecimal.
	SHA256 string `json:"sha256"`
	// RecordsSHA256 is the SHA-256 of the SHA-256 of each record's JSON, one after the other
	// as 32 bytes each: it can be checked where the content of some records is kept no more.
	RecordsSHA256 string    `json:"records_sha256"`
	SignedAt      time.Time `json:"signed_at"` // by the node's clock
}

// Encode writes a statement as it is signed.
func (s *Statement) Encode() ([]byte, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	return append(b, '\n'), err
}

// DecodeStatement reads an encoded statement. It checks its form, and nothing that it says.
func DecodeStatement(b []byte) (*Statement, error) {
	if len(b) > MaxStatement {
		return nil, fmt.Errorf("a statement of %d bytes, at most %d are accepted", len(b), MaxStatement)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var s Statement
	if err := dec.Decode(&s); err != nil {
		return nil, fmt.Errorf("it is no statement on a journal: %w", err)
	}
	if dec.More() {
		return nil, errors.New("it is no statement on a journal: something follows it")
	}
	switch {
	case s.Kind != StatementKind:
		return nil, fmt.Errorf("it is of kind %.64q, expected %q", s.Kind, StatementKind)
	case s.Run == "" || s.Node == "" || s.Role == "" || s.SheetHash == "":
		return nil, errors.New("run, node, role or run sheet is missing")
	case s.Records < 1 || s.Bytes < 1:
		return nil, fmt.Errorf("it is of %d records and %d bytes, expected at least one", s.Records, s.Bytes)
	case !isDigest(s.SHA256) || !isDigest(s.RecordsSHA256):
		return nil, errors.New("a digest is no SHA-256 in 64 hexadecimal digits")
	case s.SignedAt.IsZero():
		return nil, errors.New("the time of signing is missing")
	}
	return &s, nil
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size && s == hex.EncodeToString(b)
}

// Digests computes what a [Statement] says of the records of a journal, given one after the
// other.
type Digests struct {
	Records, Bytes int64
	file, records  hash.Hash
	line           []byte
}

// NewDigests begins with no record.
func NewDigests() *Digests { return &Digests{file: sha256.New(), records: sha256.New()} }

// Add takes the next record's JSON, as the node wrote it.
func (d *Digests) Add(record []byte) {
	d.line = appendLine(d.line[:0], record)
	d.file.Write(d.line)
	sum := sha256.Sum256(record)
	d.records.Write(sum[:])
	d.Records++
	d.Bytes += int64(len(d.line))
}

// Set writes the numbers and digests into a statement.
func (d *Digests) Set(s *Statement) {
	s.Records, s.Bytes = d.Records, d.Bytes
	s.SHA256, s.RecordsSHA256 = hex.EncodeToString(d.file.Sum(nil)), hex.EncodeToString(d.records.Sum(nil))
}

// AppendLine appends a record's line of a journal file to b.
func AppendLine(b, record []byte) []byte { return appendLine(b, record) }

// ErrNotEnded reports a journal without a run-ended.
var ErrNotEnded = errors.New("the journal has not ended")

// Statement makes a [Statement] on what the file has up to its run-ended, all of which must
// be durable. The error wraps [ErrNotEnded] where it has none. It reads the whole file.
func (j *File) Statement(sheetHash string, now time.Time) (*Statement, error) {
	j.mu.Lock()
	durable := j.durable
	j.mu.Unlock()
	d := NewDigests()
	for next := int64(1); next <= durable; {
		entries, err := j.Read(next, statementBatch)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			d.Add(e.JSON)
			var r Record
			if err := json.Unmarshal(e.JSON, &r); err != nil {
				return nil, fmt.Errorf("read journal record %d: %w", e.Seq, err)
			}
			if r.Type == TypeRunEnded {
				s := &Statement{Kind: StatementKind, Run: j.id.Run, Node: j.id.Node, Role: j.id.Role, SheetHash: sheetHash, SignedAt: now.UTC()}
				d.Set(s)
				return s, nil
			}
		}
		next += int64(len(entries))
	}
	return nil, fmt.Errorf("journal of run %s: %w", j.id.Run, ErrNotEnded)
}

// statementBatch is how much of the file is read at once, in bytes.
const statementBatch = 1 << 20
