package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestFillIsOfAnOffset(t *testing.T) {
	k := NewKey(nil, 7)
	whole := make([]byte, 1000)
	k.Fill(whole, 0)
	for offset := range 60 {
		part := make([]byte, 100)
		k.Fill(part, int64(offset))
		require.Equal(t, whole[offset:offset+100], part, "offset %d", offset)
	}
}

func TestKeysDiffer(t *testing.T) {
	require.NotEqual(t, NewKey(nil, 1), NewKey(nil, 2))
	require.NotEqual(t, NewKey(nil, 1), NewKey([]byte("secret"), 1))
	require.Equal(t, NewKey([]byte("secret"), 1), NewKey([]byte("secret"), 1))
}

func TestSourceDigestsWhatWasSent(t *testing.T) {
	k := NewKey([]byte("s"), 3)
	for _, c := range []struct{ read, sent int64 }{
		{0, 0}, {100, 100}, {100, 99}, {100, 0}, {3 * behind, 3 * behind}, {3 * behind, 3*behind - 12345}, {3 * behind, 5},
	} {
		s := NewSource(k, 1<<40)
		n, err := io.CopyN(io.Discard, s, c.read)
		require.NoError(t, err)
		require.Equal(t, c.read, n)
		want := make([]byte, c.sent)
		k.Fill(want, 0)
		sum := sha256.Sum256(want)
		require.Equal(t, hex.EncodeToString(sum[:]), s.Digest(c.sent), "%+v", c)
	}
}

func TestArrived(t *testing.T) {
	s := NewSource(NewKey(nil, 1), 1000)
	var a Arrived
	require.Equal(t, s.Digest(0), a.Digest())
	b, err := io.ReadAll(s)
	require.NoError(t, err)
	a.Add(b[:10])
	require.Equal(t, s.Digest(10), a.Digest())
	a.Add(b[10:])
	require.Equal(t, s.Digest(1000), a.Digest())
	require.EqualValues(t, 1000, a.Bytes)
}

func TestSourceEnds(t *testing.T) {
	k := NewKey(nil, 1)
	want := make([]byte, 100_001)
	k.Fill(want, 0)
	require.NoError(t, iotest.TestReader(NewSource(k, int64(len(want))), want))
	var b bytes.Buffer
	n, err := NewSource(k, int64(len(want))).WriteTo(&b)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), n)
	require.True(t, bytes.Equal(want, b.Bytes()))
	failure := errors.New("closed")
	_, err = NewSource(k, 1<<40).WriteTo(failing{failure})
	require.ErrorIs(t, err, failure)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func BenchmarkSource(b *testing.B) {
	b.SetBytes(piece)
	s := NewSource(NewKey(nil, 1), 1<<60)
	buf := make([]byte, piece)
	for b.Loop() {
		_, _ = s.Read(buf)
	}
}
