// Package auditchain is what holds the audit log together: the hash of an entry over
// the one before it, signed heads, the file of an export, and the check of all three.
// Comes in: entries and heads, from a store, the API or a file. Goes out: hashes, lines,
// the first entry that is not as it was written. Pure.
//
// Numbers are big-endian. A text is its length in bytes as 4 bytes, and its UTF-8. The
// hash of an entry is the SHA-256 of
//
//	"linktrial audit entry v1" NUL
//	hash of the entry before    32 bytes; of the first entry, zeros
//	number                      8 bytes
//	time                        8 bytes, signed: microseconds since 1970-01-01 00:00:00 UTC
//	user, via, address, action, detail, outcome, message    seven texts, in this order
//
// A signed head is an Ed25519 signature over
//
//	"linktrial audit head v1" NUL
//	number of the entry         8 bytes
//	hash of the entry           32 bytes
//	time of the signature       8 bytes, as above
//
// Numbers of entries rise by one. Some may be missing where the hashes still continue.
//
// An export has a JSON object a line. The first one has format ("linktrial audit log"),
// version (1), exported (a time) and keys: the orchestrator's public keys with their
// endorsements. An entry has id, at, user, via, address, action, detail, outcome, message
// and hash (hexadecimal); a head, which follows its entry, has head (the entry's number),
// hash, signed (a time), key (the identity of the key) and signature (base64). The last
// entry has a head.
package auditchain

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"linktrial/internal/signature"
	"linktrial/internal/unit"
)

// entryDomain is what the hashed bytes begin with.
const entryDomain = "linktrial audit entry v1\x00"

// Hash is a SHA-256. That before the first entry is zero.
type Hash [sha256.Size]byte

// Entry is an entry of the audit log.
type Entry struct {
	ID      int64
	At      time.Time // in whole microseconds
	User    string
	Via     string
	Address string
	Action  string
	Detail  string
	Outcome string
	Message string
	Hash    Hash
}

// Over is the hash that the entry must have after one with the hash before.
func (e *Entry) Over(before Hash) Hash {
	b := append([]byte(entryDomain), before[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.ID))
	b = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixMicro()))
	for _, text := range []string{e.User, e.Via, e.Address, e.Action, e.Detail, e.Outcome, e.Message} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}
	return sha256.Sum256(b)
}

// Head is the number and hash of an entry that was the last one, signed.
type Head struct {
	Entry     int64
	Hash      Hash
	Signed    time.Time // in whole microseconds
	Signature signature.Signature
}

// Message is what is signed, without the domain of such signatures.
func (h *Head) Message() []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(h.Entry))
	b = append(b, h.Hash[:]...)
	return binary.BigEndian.AppendUint64(b, uint64(h.Signed.UnixMicro()))
}

// Problem is the first thing that is wrong with a log.
type Problem struct {
	ID   int64 // of the entry that it shows at
	Text string
}

func (p *Problem) Error() string { return p.Text }

func problem(id int64, format string, args ...any) *Problem {
	return &Problem{ID: id, Text: fmt.Sprintf(format, args...)}
}

// maxExpected bounds how many heads a [Check] keeps whose entries have not come yet. In
// a whole log there is none: a head comes after its entry.
const maxExpected = 1000

// Check goes through a log from its first entry on. Its methods return a [Problem] where
// the log is not whole; nothing may be called after that.
type Check struct {
	keys     signature.Keys
	expected map[int64]expectation
	// Last is the last entry, Entries how many there were, Signed the number of the last
	// entry that a head signs.
	Last    Entry
	Entries int64
	Signed  int64
}

// expectation is what is known of an entry beforehand.
type expectation struct {
	hash Hash
	why  string
}

// NewCheck begins a check. Heads count that one of the keys has signed.
func NewCheck(keys signature.Keys) *Check {
	return &Check{keys: keys, expected: map[int64]expectation{}}
}

// Line is an entry or a head.
type Line struct {
	Entry *Entry
	Head  *Head
}

// Merge visits entries and heads, both in the order of their numbers, each head after
// its entry.
func Merge(entries []Entry, heads []Head, visit func(Line) error) error {
	for i := range entries {
		for ; len(heads) > 0 && heads[0].Entry < entries[i].ID; heads = heads[1:] {
			if err := visit(Line{Head: &heads[0]}); err != nil {
				return err
			}
		}
		if err := visit(Line{Entry: &entries[i]}); err != nil {
			return err
		}
	}
	for i := range heads {
		if err := visit(Line{Head: &heads[i]}); err != nil {
			return err
		}
	}
	return nil
}

// Line takes the next entry or head.
func (c *Check) Line(l Line) error {
	if l.Entry != nil {
		return c.Entry(*l.Entry)
	}
	return c.Head(*l.Head)
}

// Entry takes the next entry.
func (c *Check) Entry(e Entry) error {
	before := c.Last
	switch {
	case e.ID <= before.ID:
		return problem(e.ID, "entry %d of %s comes after entry %d", e.ID, unit.Moment(e.At), before.ID)
	case e.Over(before.Hash) == e.Hash:
	case e.ID > before.ID+1:
		return problem(before.ID+1, "%s before entry %d of %s", missing(before.ID+1, e.ID-1), e.ID, unit.Moment(e.At))
	case before.ID == 0:
		return problem(e.ID, "entry %d of %s was changed: its hash is not that of its content", e.ID, unit.Moment(e.At))
	default:
		return problem(e.ID, "entry %d of %s was changed, or entry %d before it: its hash is not that of its content and of the hash before it", e.ID, unit.Moment(e.At), before.ID)
	}
	if e.ID > before.ID+1 {
		// The chain was made again without an entry that was signed.
		for _, id := range slices.Sorted(maps.Keys(c.expected)) {
			if id > before.ID && id < e.ID {
				return problem(id, "entry %d is missing before entry %d of %s: it %s", id, e.ID, unit.Moment(e.At), c.expected[id].why)
			}
		}
	}
	if x, ok := c.expected[e.ID]; ok {
		if x.hash != e.Hash {
			return differs(&e, x)
		}
		delete(c.expected, e.ID)
	}
	c.Last = e
	c.Entries++
	return nil
}

func differs(e *Entry, x expectation) *Problem {
	return problem(e.ID, "entry %d of %s, or one before it, was changed and the chain made again: it %s with another hash", e.ID, unit.Moment(e.At), x.why)
}

// Head takes a signed head, of the last entry that came or of a later one.
func (c *Check) Head(h Head) error {
	if err := c.keys.VerifyAuditHead(h.Message(), h.Signature); err != nil {
		return problem(h.Entry, "the signed head of entry %d: %s", h.Entry, err)
	}
	if err := c.Expect(h.Entry, h.Hash, "was signed on "+unit.Moment(h.Signed)); err != nil {
		return err
	}
	c.Signed = max(c.Signed, h.Entry)
	return nil
}

// Expect takes the hash that is known of an entry, the last one that came or a later one.
// Why completes "entry 7 …" in a message.
func (c *Check) Expect(id int64, hash Hash, why string) error {
	x := expectation{hash, why}
	switch have, ok := c.expected[id]; {
	case id < 1:
		return problem(id, "a head of entry %d, expected 1 or more", id)
	case id < c.Last.ID:
		return problem(id, "a head of entry %d comes after entry %d", id, c.Last.ID)
	case id == c.Last.ID && hash != c.Last.Hash:
		return differs(&c.Last, x)
	case id == c.Last.ID:
		return nil
	case ok && have.hash != hash:
		return problem(id, "entry %d has two hashes: it %s, and it %s", id, have.why, why)
	case len(c.expected) >= maxExpected:
		return problem(c.Last.ID+1, "entries after entry %d are missing: there are more than %d heads of later ones", c.Last.ID, maxExpected)
	}
	c.expected[id] = x
	return nil
}

// End ends the check: no entry follows.
func (c *Check) End() error {
	if len(c.expected) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(c.expected))
	last := ids[len(ids)-1]
	end := "the log is empty"
	if c.Last.ID > 0 {
		end = fmt.Sprintf("the last one is entry %d of %s", c.Last.ID, unit.Moment(c.Last.At))
	}
	return problem(c.Last.ID+1, "%s at the end: %s, but entry %d %s", missing(c.Last.ID+1, last), end, last, c.expected[last].why)
}

func missing(first, last int64) string {
	if first == last {
		return fmt.Sprintf("entry %d is missing", first)
	}
	return fmt.Sprintf("entries %d to %d are missing", first, last)
}

// ParseHash takes 32 bytes.
func ParseHash(b []byte) (Hash, error) {
	if len(b) != len(Hash{}) {
		return Hash{}, fmt.Errorf("a hash of %d bytes, expected %d", len(b), len(Hash{}))
	}
	return Hash(bytes.Clone(b)), nil
}
