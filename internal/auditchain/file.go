package auditchain

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"linktrial/internal/signature"
	"linktrial/internal/unit"
)

// An export has a JSON object a line: one with the format and the public keys, then
// entries, oldest first, and heads, each after its entry.

const (
	formatName = "linktrial audit log"
	format     = 1
	// maxLine bounds a line, in bytes. An entry's texts are some thousand at most.
	maxLine = 1 << 20
)

// Header is the first line of an export.
type Header struct {
	Exported time.Time
	Keys     []signature.Endorsed // of the orchestrator, oldest first
}

type headerLine struct {
	Format   string    `json:"format"`
	Version  int       `json:"version"`
	Exported time.Time `json:"exported"`
	Keys     []keyLine `json:"keys"`
}

type keyLine struct {
	Public      string `json:"public"`
	EndorsedBy  string `json:"endorsed_by,omitempty"`
	Endorsement []byte `json:"endorsement,omitempty"`
}

type entryLine struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	User    string    `json:"user"`
	Via     string    `json:"via"`
	Address string    `json:"address"`
	Action  string    `json:"action"`
	Detail  string    `json:"detail"`
	Outcome string    `json:"outcome"`
	Message string    `json:"message"`
	Hash    string    `json:"hash"`
}

type headLine struct {
	Head      int64     `json:"head"`
	Hash      string    `json:"hash"`
	Signed    time.Time `json:"signed"`
	Key       string    `json:"key"`
	Signature []byte    `json:"signature"`
}

// Writer writes an export.
type Writer struct{ to io.Writer }

// NewWriter writes the first line.
func NewWriter(to io.Writer, h Header) (*Writer, error) {
	w := &Writer{to}
	line := headerLine{Format: formatName, Version: format, Exported: h.Exported.UTC(), Keys: []keyLine{}}
	for _, k := range h.Keys {
		line.Keys = append(line.Keys, keyLine{Public: k.Key.String(), EndorsedBy: k.By, Endorsement: k.Endorsement})
	}
	return w, w.line(line)
}

func (w *Writer) line(x any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		return err
	}
	_, err := w.to.Write(b.Bytes())
	return err
}

// Line writes an entry or a head.
func (w *Writer) Line(l Line) error {
	if l.Head != nil {
		return w.line(lineOf(*l.Head))
	}
	e := l.Entry
	return w.line(entryLine{ID: e.ID, At: e.At.UTC(), User: e.User, Via: e.Via, Address: e.Address, Action: e.Action, Detail: e.Detail, Outcome: e.Outcome, Message: e.Message, Hash: hex.EncodeToString(e.Hash[:])})
}

func lineOf(h Head) headLine {
	return headLine{Head: h.Entry, Hash: hex.EncodeToString(h.Hash[:]), Signed: h.Signed.UTC(), Key: h.Signature.KeyID, Signature: h.Signature.Bytes}
}

// Reader reads an export.
type Reader struct {
	lines *bufio.Scanner
	n     int
	Header
}

// NewReader reads the first line.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{lines: bufio.NewScanner(from)}
	r.lines.Buffer(nil, maxLine)
	b, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty, expected the file of 'linktrial audit-log export'")
	}
	if err != nil {
		return nil, err
	}
	var h headerLine
	// What a later version adds must not hide which version it is.
	if err := json.Unmarshal(b, &h); err != nil || h.Format != formatName {
		return nil, errors.New("it does not begin as the file of 'linktrial audit-log export' does")
	}
	if h.Version != format {
		return nil, fmt.Errorf("version %d of the format, this Linktrial reads %d", h.Version, format)
	}
	r.Exported = h.Exported
	for _, k := range h.Keys {
		public, err := signature.ParsePublicKey(k.Public)
		if err != nil {
			return nil, r.at(err)
		}
		r.Keys = append(r.Keys, signature.Endorsed{Key: public, By: k.EndorsedBy, Endorsement: k.Endorsement})
	}
	return r, nil
}

func (r *Reader) next() ([]byte, error) {
	r.n++
	if r.lines.Scan() {
		return r.lines.Bytes(), nil
	}
	if err := r.lines.Err(); err != nil {
		return nil, r.at(err)
	}
	return nil, io.EOF
}

func (r *Reader) at(err error) error { return fmt.Errorf("line %d: %w", r.n, err) }

// Next reads the next line; the error is io.EOF after the last one.
func (r *Reader) Next() (Line, error) {
	b, err := r.next()
	if err != nil {
		return Line{}, err
	}
	var kind struct {
		ID, Head *int64
	}
	if err := json.Unmarshal(b, &kind); err != nil {
		return Line{}, r.at(fmt.Errorf("it is not a JSON object, the file may have been cut off: %w", err))
	}
	var out Line
	switch {
	case kind.ID != nil && kind.Head == nil:
		out.Entry, err = parseEntry(b)
	case kind.Head != nil && kind.ID == nil:
		out.Head, err = parseHead(b)
	default:
		err = errors.New("neither an entry nor a head")
	}
	if err != nil {
		return Line{}, r.at(err)
	}
	return out, nil
}

func parseEntry(b []byte) (*Entry, error) {
	var l entryLine
	if err := strict(b, &l); err != nil {
		return nil, err
	}
	hash, err := parseHex(l.Hash)
	if err == nil {
		err = wholeMicroseconds(l.At)
	}
	return &Entry{ID: l.ID, At: l.At, User: l.User, Via: l.Via, Address: l.Address, Action: l.Action, Detail: l.Detail, Outcome: l.Outcome, Message: l.Message, Hash: hash}, err
}

func parseHead(b []byte) (*Head, error) {
	var l headLine
	if err := strict(b, &l); err != nil {
		return nil, err
	}
	hash, err := parseHex(l.Hash)
	if err == nil {
		err = wholeMicroseconds(l.Signed)
	}
	return &Head{Entry: l.Head, Hash: hash, Signed: l.Signed, Signature: signature.Signature{KeyID: l.Key, Bytes: l.Signature}}, err
}

// FormatHead writes a head as a line of text.
func FormatHead(h Head) ([]byte, error) {
	b, err := json.Marshal(lineOf(h))
	return append(b, '\n'), err
}

// ParseHead reads what [FormatHead] wrote.
func ParseHead(b []byte) (Head, error) {
	h, err := parseHead(b)
	if err != nil {
		return Head{}, err
	}
	return *h, nil
}

// wholeMicroseconds refuses a time of which a part would be in no hash.
func wholeMicroseconds(t time.Time) error {
	if t.Nanosecond()%1000 != 0 {
		return fmt.Errorf("time %s, expected whole microseconds", t.Format(time.RFC3339Nano))
	}
	return nil
}

func strict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func parseHex(s string) (Hash, error) {
	b, err := hex.DecodeString(s)
	if err != nil {
		return Hash{}, fmt.Errorf("hash %.80q: %w", s, err)
	}
	return ParseHash(b)
}

// Verify checks a whole export. Trusted says whose heads count; empty: those of the keys
// in the export's first line. Expect, which may be nil, tells the check what is known
// beforehand.
func Verify(from io.Reader, trusted signature.Keys, expect func(*Check) error) (*Check, Header, error) {
	r, err := NewReader(from)
	if err != nil {
		return nil, Header{}, err
	}
	c := NewCheck(Trusting(trusted, r.Keys))
	if expect != nil {
		if err := expect(c); err != nil {
			return c, r.Header, err
		}
	}
	for {
		line, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return c, r.Header, c.Complete()
		case err != nil:
			return c, r.Header, err
		}
		if err := c.Line(line); err != nil {
			return c, r.Header, err
		}
	}
}

// Complete is [Check.End] of an export: its last entry must be signed.
func (c *Check) Complete() error {
	if err := c.End(); err != nil {
		return err
	}
	if c.Signed < c.Last.ID {
		return problem(c.Signed+1, "no signed head covers the entries after entry %d up to entry %d of %s: the end of the export is missing", c.Signed, c.Last.ID, unit.Moment(c.Last.At))
	}
	return nil
}

// Trusting are the trusted keys and those that they endorse; without trusted ones those
// that the orchestrator names.
func Trusting(trusted signature.Keys, named []signature.Endorsed) signature.Keys {
	keys := signature.Keys{}
	if len(trusted) == 0 {
		for _, k := range named {
			keys[k.Key.ID()] = k.Key
		}
		return keys
	}
	for id, k := range trusted {
		keys[id] = k
	}
	keys.Extend(named)
	return keys
}
