package auditchain

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/internal/signature"
)

var begin = time.Date(2026, 5, 1, 8, 0, 0, 123456000, time.UTC)

// key is the same in every run of the tests.
func key(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// log is a whole log of n entries.
func log(n int) []Entry {
	var out []Entry
	var before Hash
	for i := range n {
		e := Entry{ID: int64(i + 1), At: begin.Add(time.Duration(i) * time.Minute), User: "anna", Via: "session", Address: "::1", Action: "A.B", Detail: "größe=1", Outcome: "done"}
		e.Hash = e.Over(before)
		before = e.Hash
		out = append(out, e)
	}
	return out
}

func rechain(entries []Entry) {
	var before Hash
	for i := range entries {
		entries[i].Hash = entries[i].Over(before)
		before = entries[i].Hash
	}
}

func head(private ed25519.PrivateKey, e Entry) Head {
	h := Head{Entry: e.ID, Hash: e.Hash, Signed: begin.Add(time.Hour)}
	h.Signature = signature.SignAuditHead(private, h.Message())
	return h
}

// The bytes are those of the package's documentation, written here once more by hand.
func TestHashedBytes(t *testing.T) {
	e := log(1)[0]
	b := []byte("linktrial audit entry v1\x00")
	b = append(b, make([]byte, 32)...)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 1)
	at, err := hex.DecodeString("000650bcf7b44240") // 1777622400123456
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, at...)
	b = append(b, "\x00\x00\x00\x04anna\x00\x00\x00\x07session\x00\x00\x00\x03::1\x00\x00\x00\x03A.B\x00\x00\x00\x09größe=1\x00\x00\x00\x04done\x00\x00\x00\x00"...)
	if want := sha256.Sum256(b); e.Hash != want {
		t.Errorf("hash %x, expected %x", e.Hash, want)
	}
}

func TestCheck(t *testing.T) {
	own := key("own")
	for name, c := range map[string]struct {
		change func([]Entry) []Entry
		heads  func([]Entry) []Head // of the log as it was
		want   string
		id     int64
	}{
		"whole": {},
		"a text": {change: func(e []Entry) []Entry {
			e[2].User = "dirk"
			return e
		}, want: "entry 3 of 2026-05-01 08:02:00 UTC was changed", id: 3},
		"a text that moved to the next field": {change: func(e []Entry) []Entry {
			e[2].User, e[2].Via = "annas", "ession"
			return e
		}, want: "entry 3 ", id: 3},
		"the first": {change: func(e []Entry) []Entry {
			e[0].Message = "x"
			return e
		}, want: "entry 1 of 2026-05-01 08:00:00 UTC was changed", id: 1},
		"a time": {change: func(e []Entry) []Entry {
			e[3].At = e[3].At.Add(time.Microsecond)
			return e
		}, want: "entry 4 ", id: 4},
		"a text and its hash": {change: func(e []Entry) []Entry {
			e[2].User = "dirk"
			e[2].Hash = e[2].Over(e[1].Hash)
			return e
		}, want: "entry 4 of 2026-05-01 08:03:00 UTC was changed, or entry 3 before it", id: 4},
		"one removed":  {change: func(e []Entry) []Entry { return slices.Delete(e, 2, 3) }, want: "entry 3 is missing before entry 4 of 2026-05-01 08:03:00 UTC", id: 3},
		"two removed":  {change: func(e []Entry) []Entry { return slices.Delete(e, 1, 3) }, want: "entries 2 to 3 are missing before entry 4", id: 2},
		"begin":        {change: func(e []Entry) []Entry { return e[2:] }, want: "entries 1 to 2 are missing before entry 3", id: 1},
		"order":        {change: func(e []Entry) []Entry { e[1], e[2] = e[2], e[1]; return e }, want: "entry 2 is missing before entry 3", id: 2},
		"twice":        {change: func(e []Entry) []Entry { return append(e, e[4]) }, want: "entry 5 of 2026-05-01 08:04:00 UTC comes after entry 5", id: 5},
		"end":          {change: func(e []Entry) []Entry { return e[:3] }, want: "entries 4 to 5 are missing at the end: the last one is entry 3 of 2026-05-01 08:02:00 UTC, but entry 5 was signed on 2026-05-01 09:00:00 UTC", id: 4},
		"all":          {change: func([]Entry) []Entry { return nil }, want: "entries 1 to 5 are missing at the end: the log is empty", id: 1},
		"chained anew": {change: func(e []Entry) []Entry { e[1].User = "dirk"; rechain(e); return e }, want: "entry 5 of 2026-05-01 08:04:00 UTC, or one before it, was changed and the chain made again: it was signed on", id: 5},
		"removed and chained anew": {change: func(e []Entry) []Entry { e = slices.Delete(e, 2, 3); rechain(e); return e },
			heads: func(e []Entry) []Head { return []Head{head(own, e[2]), head(own, e[4])} }, want: "entry 3 is missing before entry 4 of 2026-05-01 08:03:00 UTC: it was signed on", id: 3},
		"another's key": {heads: func(e []Entry) []Head { return []Head{head(key("other"), e[4])} }, want: "the signed head of entry 5: it is signed by key", id: 5},
		"signature": {heads: func(e []Entry) []Head {
			h := head(own, e[4])
			h.Signed = h.Signed.Add(time.Second)
			return []Head{h}
		}, want: "does not match its signature", id: 5},
		"no head": {heads: func([]Entry) []Head { return nil }, want: "no signed head covers the entries after entry 0", id: 1},
		"old gap": {change: func(e []Entry) []Entry { e[4].ID = 9; rechain(e); return e }, heads: func(e []Entry) []Head {
			e[4].ID = 9
			rechain(e)
			return []Head{head(own, e[4])}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			heads := []Head{head(own, log(5)[4])}
			if c.heads != nil {
				heads = c.heads(log(5))
			}
			entries := log(5)
			if c.change != nil {
				entries = c.change(entries)
			}
			check := NewCheck(signature.NewKeys(signature.PublicOf(own)))
			err := Merge(entries, heads, check.Line)
			if err == nil {
				err = check.Complete()
			}
			if c.want == "" {
				if err != nil || check.Entries != 5 || check.Signed != check.Last.ID {
					t.Errorf("%v, %d entries, signed up to %d", err, check.Entries, check.Signed)
				}
				return
			}
			var p *Problem
			if !errors.As(err, &p) || !strings.Contains(p.Text, c.want) || p.ID != c.id {
				t.Errorf("%#v, expected %q at %d", err, c.want, c.id)
			}
			// The file of an export has the same problem.
			if _, _, err := Verify(bytes.NewReader(export(t, entries, heads)), nil, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("as a file: %v", err)
			}
		})
	}
}

func export(t testing.TB, entries []Entry, heads []Head) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Exported: begin, Keys: []signature.Endorsed{{Key: signature.PublicOf(key("own"))}}})
	if err == nil {
		err = Merge(entries, heads, w.Line)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Entries and heads whose number nothing bounds do not fill memory.
func TestHeadsWithoutEntries(t *testing.T) {
	c := NewCheck(nil)
	var err error
	for i := int64(1); i < 2*maxExpected && err == nil; i++ {
		err = c.Expect(i, Hash{}, "was signed")
	}
	if err == nil || len(c.expected) != maxExpected {
		t.Errorf("%d kept: %v", len(c.expected), err)
	}
}

func TestVerifyFile(t *testing.T) {
	own := key("own")
	entries := log(5)
	good := export(t, entries, []Head{head(own, entries[2]), head(own, entries[4])})
	lines := bytes.SplitAfter(good, []byte("\n"))
	trusted := signature.NewKeys(signature.PublicOf(key("other")))
	for name, c := range map[string]struct {
		file []byte
		keys signature.Keys
		want string
	}{
		"good":            {file: good},
		"not trusted":     {file: good, keys: trusted, want: "is signed by key"},
		"empty":           {want: "it is empty"},
		"another file":    {file: []byte("{\"id\":1}\n"), want: "does not begin as"},
		"later version":   {file: bytes.Replace(good, []byte(`"version":1`), []byte(`"version":2`), 1), want: "version 2 of the format"},
		"torn":            {file: good[:len(good)-20], want: "may have been cut off"},
		"without its end": {file: bytes.Join(lines[:6], nil), want: "no signed head covers the entries after entry 3 up to entry 4"},
		"another line":    {file: append(slices.Clone(good), "{}\n"...), want: "line 9: neither an entry nor a head"},
		"unknown field":   {file: bytes.Replace(good, []byte(`{"id":2,`), []byte(`{"id":2,"x":1,`), 1), want: `unknown field "x"`},
		"nanoseconds":     {file: bytes.Replace(good, []byte(`"at":"2026-05-01T08:00:00.123456Z"`), []byte(`"at":"2026-05-01T08:00:00.123456001Z"`), 1), want: "whole microseconds"},
		"short hash":      {file: bytes.Replace(good, []byte(`"hash":"`), []byte(`"hash":"00`), 1), want: "a hash of 33 bytes"},
	} {
		check, _, err := Verify(bytes.NewReader(c.file), c.keys, nil)
		switch {
		case c.want == "" && (err != nil || check.Entries != 5):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
	}
	h := head(own, entries[4])
	b, err := FormatHead(h)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseHead(b); err != nil || !again.Signed.Equal(h.Signed) || !bytes.Equal(again.Message(), h.Message()) {
		t.Errorf("%v, %v", again, err)
	}
}

// What the check takes, and another program reads, is what was written: no other bytes
// pass as the same entries.
func FuzzVerify(f *testing.F) {
	entries := log(3)
	good := export(f, entries, []Head{head(key("own"), entries[1]), head(key("own"), entries[2])})
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add(bytes.ReplaceAll(good, []byte("anna"), []byte("dirk")))
	keys := signature.NewKeys(signature.PublicOf(key("own")))
	f.Fuzz(func(t *testing.T, b []byte) {
		check, _, err := Verify(bytes.NewReader(b), keys, nil)
		if err != nil || check.Entries == 0 {
			return
		}
		// Only what the key has signed passes: entries 1 to 2, or 1 to 3.
		last := entries[max(check.Last.ID, 1)-1]
		if check.Entries != check.Last.ID || check.Last.Hash != last.Hash || check.Last.User != last.User {
			t.Errorf("%d entries pass, the last one %+v", check.Entries, check.Last)
		}
	})
}
