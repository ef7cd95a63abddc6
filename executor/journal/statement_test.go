package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/radio"
)

func aStatement() *Statement {
	d := NewDigests()
	d.Add([]byte(`{"seq":1}`))
	s := &Statement{Kind: StatementKind, Run: "r1", Node: "n1", Role: radio.RoleClient, SheetHash: "hash", SignedAt: time.Date(2026, 5, 4, 8, 0, 0, 5, time.UTC)}
	d.Set(s)
	return s
}

// A statement is of the file up to its end: `head` and `sha256sum` have the same.
func TestStatementOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := Open(path, Identity{Run: "r1", Node: "n1", Role: radio.RoleClient}, Options{ReserveBytes: -1})
	require.NoError(t, err)
	defer j.Close()
	for i := range 50 {
		_, err := j.Append(TypeSamples, Samples{Side: strings.Repeat("s", 50<<10), Trial: i})
		require.NoError(t, err)
	}
	require.NoError(t, j.Sync())
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.FixedZone("", 7200))
	_, err = j.Statement("hash", now)
	require.ErrorIs(t, err, ErrNotEnded)
	_, err = j.Append(TypeRunEnded, RunEnded{End: RunCompleted})
	require.NoError(t, err)
	_, err = j.Statement("hash", now)
	require.ErrorIs(t, err, ErrNotEnded, "an end that a crash may take away is not signed")
	require.NoError(t, j.Sync())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = j.Append(TypeTrialEnded, TrialEnded{})
	require.NoError(t, err)
	require.NoError(t, j.Sync())
	got, err := j.Statement("hash", now)
	require.NoError(t, err)

	want := aStatement()
	want.SignedAt = now.UTC()
	d := NewDigests()
	for _, line := range bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n")) {
		d.Add(line[prefix:])
	}
	d.Set(want)
	require.Equal(t, want, got)
	require.EqualValues(t, 51, got.Records)
	require.EqualValues(t, len(whole), got.Bytes)
}

func TestDecodeStatement(t *testing.T) {
	right, err := aStatement().Encode()
	require.NoError(t, err)
	got, err := DecodeStatement(right)
	require.NoError(t, err)
	require.Equal(t, aStatement(), got)
	for name, c := range map[string]struct{ old, new, want string }{
		"another kind":   {"journal v1", "journal v2", `it is of kind "linktrial journal v2"`},
		"an extra field": {`"kind"`, `"x": 1, "kind"`, "it is no statement on a journal"},
		"more behind it": {"}\n", "}{}", "something follows it"},
		"no run":         {`"r1"`, `""`, "run, node, role or run sheet is missing"},
		"no records":     {`"records": 1`, `"records": 0`, "it is of 0 records"},
		"no digest":      {`"sha256": "`, `"sha256": "A`, "a digest is no SHA-256"},
		"no time":        {"2026-05-04T08:00:00.000000005Z", "0001-01-01T00:00:00Z", "the time of signing is missing"},
		"long":           {"r1", strings.Repeat("r", MaxStatement), "at most 4096 are accepted"},
	} {
		b := bytes.Replace(right, []byte(c.old), []byte(c.new), 1)
		require.NotEqual(t, right, b, name)
		_, err := DecodeStatement(b)
		require.ErrorContains(t, err, c.want, name)
	}
}

// FuzzDecodeStatement: what is taken is complete, and is the same when it is written again.
func FuzzDecodeStatement(f *testing.F) {
	b, err := aStatement().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeStatement(b)
		if err != nil {
			return
		}
		if s.Run == "" || s.Node == "" || s.Records < 1 || len(s.SHA256) != 64 || len(s.RecordsSHA256) != 64 {
			t.Fatalf("half a statement: %+v", s)
		}
		again, err := s.Encode()
		if err != nil {
			t.Fatalf("a statement that cannot be written: %v", err)
		}
		if len(again) > MaxStatement {
			return // the shorter form was within the bound
		}
		other, err := DecodeStatement(again)
		if err != nil || !s.SignedAt.Equal(other.SignedAt) {
			t.Fatalf("%+v became %+v: %v", s, other, err)
		}
	})
}
