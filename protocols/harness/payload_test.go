package harness

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"sync"
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
		if r.SizeBytes != s.SizeBytes || r.Final.SentBytes != r.SizeBytes || *r.Final.AckedBytes != r.SizeBytes {
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
	right := bytes.Repeat([]byte("payload"), 3)[:20]
	one := append(contract.AppendChunkLength(nil, 20), right...)
	f.Add(append(one, 0, 0, 0, 0), int64(20))
	f.Add(one, int64(19))
	f.Add([]byte{0, 0x10, 0, 1, 5}, int64(1<<30))
	f.Fuzz(func(t *testing.T, b []byte, atMost int64) {
		in, out := newIncoming(t, bytes.NewReader(b))
		err := in.open(atMost)
		in.flush()
		got := out.payload(id(1))
		if n := int64(len(got)); n != in.handed.Load() || n > max(0, atMost) || n > int64(len(b)) {
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
		if !bytes.Equal(whole, got) {
			t.Fatalf("%x: %x was handed over, expected %x", b, got, whole)
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

// newIncoming reads the payload of transfer 1 with a small buffer.
func newIncoming(t *testing.T, c io.Reader) (*incoming, *output) {
	t.Helper()
	out := newOutput(t)
	return &incoming{c: c, ev: &events{w: out, log: newLogger(io.Discard)}, transfer: id(1), handed: new(atomic.Int64),
		buf: make([]byte, blockHead+blockSize+1000), from: blockHead, to: blockHead}, out
}

// TestBlocks: whatever reads return, and whenever a sample has it handed over meanwhile, what
// is handed over is what arrived.
func TestBlocks(t *testing.T) {
	payload := make([]byte, 5*blockSize+77)
	rand.NewChaCha8([32]byte{}).Read(payload)
	for _, most := range []int{1, 100, 1400, 1 << 20} {
		in, out := newIncoming(t, &inParts{bytes.NewReader(payload), most})
		var flushing sync.WaitGroup
		done := make(chan struct{})
		flushing.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					in.flush()
				}
			}
		})
		err := in.sized(int64(len(payload)))
		close(done)
		flushing.Wait()
		in.flush()
		if err != nil || !bytes.Equal(out.payload(id(1)), payload) || in.handed.Load() != int64(len(payload)) {
			t.Errorf("reads of at most %d bytes: %v, %d bytes counted, and other ones than arrived", most, err, in.handed.Load())
		}
	}
}

// inParts reads at most so many bytes at a time.
type inParts struct {
	r    io.Reader
	most int
}

func (p *inParts) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.most)]) }

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
