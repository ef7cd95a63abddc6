package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"sync/atomic"
	"testing"
	"time"

	"linktrial/protocols/contract"
)

// TestTimeBounds: what a time bounds ends by it, or by its size where that
// comes first, and is verified like any other.
func TestTimeBounds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l, port := open(t)
	so, sc := (&stage{listener: l}).begin(t, ctx, parameters(contract.RoleServer, port, 0, ""))
	for i, c := range []struct{ atMost, ms int64 }{
		{contract.MaxSize, 200}, {0, 10_000}, {1, 10_000}, {openChunk, 10_000}, {3*openChunk + 1, 10_000}, {contract.MaxSize, 1},
	} {
		p := parameters(contract.RoleClient, port, c.atMost, id(i+1))
		p.Transfer.DurationMS = c.ms
		co, cc := (&stage{}).begin(t, t.Context(), p)
		if x := exit(t, cc); x != contract.ExitOK {
			t.Fatalf("%+v: exit code %d, events %+v", c, x, co.events)
		}
		r, s := co.await(contract.KindResult, p.Transfer.ID).Result, so.await(contract.KindResult, p.Transfer.ID).Result
		if r.Digest != s.Digest || r.SizeBytes != s.SizeBytes || r.Final.SentBytes != r.SizeBytes || *r.Final.AckedBytes != r.SizeBytes {
			t.Errorf("%+v: client %+v, server %+v", c, r, s)
		}
		if c.atMost < contract.MaxSize && r.SizeBytes != c.atMost {
			t.Errorf("%+v: %d bytes were sent", c, r.SizeBytes)
		}
		if c.atMost == contract.MaxSize && (r.SizeBytes == 0 || r.ElapsedNS < c.ms*1e6) {
			t.Errorf("%+v: %d bytes in %s", c, r.SizeBytes, time.Duration(r.ElapsedNS))
		}
	}
	stop()
	exit(t, sc)
}

// FuzzOpenPayload: whatever a client sends, no more is taken than it announced,
// and what is taken without fault is what its chunks say.
func FuzzOpenPayload(f *testing.F) {
	right := make([]byte, 20)
	contract.Payload(right, 7, 0)
	one := append(contract.AppendChunkLength(nil, 20), right...)
	f.Add(append(one, 0, 0, 0, 0), int64(20))
	f.Add(one, int64(19))
	f.Add([]byte{0, 0x10, 0, 1, 5}, int64(1<<30))
	f.Fuzz(func(t *testing.T, b []byte, atMost int64) {
		var got atomic.Int64
		in := incoming{c: bytes.NewReader(b), seed: 7, sum: sha256.New(), got: &got, buf: make([]byte, 64), flip: -1, wrong: -1}
		err := in.open(atMost)
		if n := got.Load(); n > max(0, atMost) || n > int64(len(b)) {
			t.Fatalf("%d bytes were taken of %d, announced %d", n, len(b), atMost)
		}
		if err != nil {
			return
		}
		var whole []byte
		for rest := b; ; {
			n, err := contract.ParseChunkLength(rest[:contract.ChunkLengthSize])
			if err != nil || n > len(rest)-contract.ChunkLengthSize {
				t.Fatalf("%x was taken", b)
			}
			rest = rest[contract.ChunkLengthSize:]
			if n == 0 {
				break
			}
			whole, rest = append(whole, rest[:n]...), rest[n:]
		}
		if sum := sha256.Sum256(whole); int64(len(whole)) != got.Load() || !bytes.Equal(sum[:], in.sum.Sum(nil)) || int64(contract.Verify(whole, 7, 0)) != in.wrong {
			t.Fatalf("%x: %d bytes with fault at %d, expected %x", b, got.Load(), in.wrong, whole)
		}
	})
}

func TestOpenPayload(t *testing.T) {
	for stream, want := range map[int64]int64{
		0: 0, 4: 0, 5: 1, 4 + openChunk: openChunk, 8 + openChunk: openChunk, 9 + openChunk: openChunk + 1, 3 * (4 + openChunk): 3 * openChunk,
	} {
		if got := openPayload(stream); got != want {
			t.Errorf("%d bytes of the stream are %d of payload, expected %d", stream, got, want)
		}
	}
}

// TestFlip: a byte that a test has expected to be another is the one that is
// wrong, wherever reads are cut, and the digest is of what arrived.
func TestFlip(t *testing.T) {
	payload := make([]byte, 1000)
	contract.Payload(payload, 7, 0)
	sum := sha256.Sum256(payload)
	for flip, want := range map[int64]int64{0: 0, 1: 1, 63: 63, 64: 64, 999: 999, 1000: -1, -1: -1} {
		var got atomic.Int64
		in := incoming{c: bytes.NewReader(payload), seed: 7, sum: sha256.New(), got: &got, buf: make([]byte, 64), flip: flip, wrong: -1}
		if err := in.sized(1000); err != nil {
			t.Fatal(err)
		}
		if in.wrong != want || !bytes.Equal(in.sum.Sum(nil), sum[:]) {
			t.Errorf("flip at %d: wrong at %d, expected %d; digest %x", flip, in.wrong, want, in.sum.Sum(nil))
		}
	}
}

// TestPace: chunks are larger only where writes have been fast for long, and one
// slow write makes them small again.
func TestPace(t *testing.T) {
	var p pace
	for i := range fastWrites {
		if p.chunk() != chunk {
			t.Fatalf("%d bytes at a time after %d fast writes", p.chunk(), i)
		}
		p.took(fastWrite)
	}
	if p.chunk() != fastChunk {
		t.Errorf("%d bytes at a time after %d fast writes, expected %d", p.chunk(), fastWrites, fastChunk)
	}
	p.took(fastWrite + 1)
	if p.chunk() != chunk {
		t.Errorf("%d bytes at a time after a slow write, expected %d", p.chunk(), chunk)
	}
}
