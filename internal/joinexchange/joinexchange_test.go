package joinexchange

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // a constant of the library is one
	"crypto/sha256"
	"math/big"
	"slices"
	"testing"

	"github.com/schollz/pake/v3"
	"github.com/stretchr/testify/require"

	"linktrial/internal/joincode"
)

func code(t testing.TB, s string) joincode.Code {
	c, err := joincode.Parse(s)
	require.NoError(t, err)
	return c
}

var cert = Binding{ID: [IDBytes]byte{1, 2, 3}, Certificate: sha256.Sum256([]byte("certificate"))}

// exchange lets both sides finish, each with what it has seen.
func exchange(t *testing.T, typed, opened joincode.Code, seen, shown Binding) (joiner, opener *Session) {
	j, err := NewJoiner(typed)
	require.NoError(t, err)
	point, opener, err := Answer(opened, shown, j.Point())
	require.NoError(t, err)
	joiner, err = j.Finish(seen, point)
	require.NoError(t, err)
	return joiner, opener
}

func TestSameCode(t *testing.T) {
	c := code(t, "4821-tango-river")
	joiner, opener := exchange(t, c, c, cert, cert)
	require.True(t, opener.Confirmed(joiner.Confirmation()))
	require.True(t, joiner.Confirmed(opener.Confirmation()))
	require.False(t, joiner.Confirmed(joiner.Confirmation()), "its own, sent back")

	sealed := joiner.Seal([]byte("name"))
	plain, err := opener.Open(sealed)
	require.NoError(t, err)
	require.Equal(t, "name", string(plain))
	_, err = joiner.Open(sealed)
	require.ErrorIs(t, err, errSealed, "its own, sent back")
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		_, err := opener.Open(changed)
		require.ErrorIs(t, err, errSealed, "byte %d", i)
	}
	for n := range sealed {
		_, err := opener.Open(sealed[:n])
		require.ErrorIs(t, err, errSealed, "the first %d bytes", n)
	}
}

// Each of what both must agree on makes other keys.
func TestDifferent(t *testing.T) {
	c, other := code(t, "4821-tango-river"), cert
	other.Certificate[31] ^= 1
	number := cert
	number.ID[0]++
	for name, x := range map[string]struct {
		typed       joincode.Code
		seen, shown Binding
	}{
		"digits":            {code(t, "4822-tango-river"), cert, cert},
		"words exchanged":   {code(t, "4821-river-tango"), cert, cert},
		"certificate":       {c, other, cert},
		"number":            {c, number, cert},
		"shown certificate": {c, cert, other},
	} {
		joiner, opener := exchange(t, x.typed, c, x.seen, x.shown)
		require.False(t, opener.Confirmed(joiner.Confirmation()), name)
		require.False(t, joiner.Confirmed(opener.Confirmation()), name)
		_, err := opener.Open(joiner.Seal(nil))
		require.ErrorIs(t, err, errSealed, name)
		_, err = joiner.Open(opener.Seal(nil))
		require.ErrorIs(t, err, errSealed, name)
	}
}

// Messages of an earlier exchange with the same code are of no use in another one.
func TestReplay(t *testing.T) {
	c := code(t, "4821-tango-river")
	j, err := NewJoiner(c)
	require.NoError(t, err)
	point, first, err := Answer(c, cert, j.Point())
	require.NoError(t, err)
	joiner, err := j.Finish(cert, point)
	require.NoError(t, err)
	require.True(t, first.Confirmed(joiner.Confirmation()))

	again, second, err := Answer(c, cert, j.Point())
	require.NoError(t, err)
	require.NotEqual(t, point, again, "the orchestrator draws another point")
	require.False(t, second.Confirmed(joiner.Confirmation()))
	_, err = second.Open(joiner.Seal(nil))
	require.ErrorIs(t, err, errSealed)
	_, err = j.Finish(cert, again)
	require.ErrorContains(t, err, "finished already")
}

// Nobody knows the logarithms of the library's constant points: their coordinates are
// hashes of short texts. Who knew one could try codes later from one exchange.
func TestPointsOfTheLibrary(t *testing.T) {
	p, err := pake.InitCurve([]byte{1}, joinerRole, curve)
	require.NoError(t, err)
	for text, x := range map[string]*big.Int{"croc2": p.Uᵤ, "croc1": p.Vᵤ} {
		h := sha1.Sum([]byte(text)) //nolint:gosec // as above
		slices.Reverse(h[:])
		require.Equal(t, new(big.Int).SetBytes(h[:]), x)
	}
}

// A point that leaves nothing when the guess of the code is subtracted is answered like
// any other, and takes the code to make.
func TestPointOfTheCodeAlone(t *testing.T) {
	w, err := instance(code(t, "4821-tango-river"), joinerRole)
	require.NoError(t, err)
	alone := encode(w.Upwᵤ, w.Upwᵥ)
	for _, c := range []string{"4821-tango-river", "4822-tango-river"} {
		_, s, err := Answer(code(t, c), cert, alone)
		require.NoError(t, err)
		require.False(t, s.Confirmed(make([]byte, sha256.Size)))
	}
}

func TestBadPoints(t *testing.T) {
	c := code(t, "4821-tango-river")
	j, err := NewJoiner(c)
	require.NoError(t, err)
	good := j.Point()
	off := bytes.Clone(good)
	off[64] ^= 1
	large := bytes.Repeat([]byte{255}, PointBytes)
	large[0] = 4
	compressed := append([]byte{2 + good[64]&1}, good[1:33]...)
	for name, p := range map[string][]byte{"none": nil, "identity": {0}, "zeros": append([]byte{4}, make([]byte, 64)...), "off the curve": off, "beyond the field": large, "compressed": compressed, "too long": append(bytes.Clone(good), 0)} {
		_, _, err := Answer(c, cert, p)
		require.ErrorIs(t, err, ErrPoint, name)
		j, err := NewJoiner(c)
		require.NoError(t, err)
		_, err = j.Finish(cert, p)
		require.ErrorIs(t, err, ErrPoint, name)
	}
}

func FuzzAnswer(f *testing.F) {
	c := code(f, "4821-tango-river")
	j, err := NewJoiner(c)
	require.NoError(f, err)
	f.Add(j.Point(), []byte("sealed"))
	f.Add([]byte{0}, []byte{})
	f.Fuzz(func(t *testing.T, point, sealed []byte) {
		own, s, err := Answer(c, cert, point)
		if err != nil {
			return
		}
		if _, err := s.Open(sealed); err == nil || s.Confirmed(sealed) {
			t.Fatal("taken without the code")
		}
		if _, _, err := decode(own); err != nil {
			t.Fatalf("own point %x: %v", own, err)
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	c := code(b, "4821-tango-river")
	j, err := NewJoiner(c)
	require.NoError(b, err)
	for b.Loop() {
		_, _, err := Answer(c, cert, j.Point())
		require.NoError(b, err)
	}
}
