package contract

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// The test vectors of docs/driver-contract.md, made by a program in another
// language; TestVectorsInDocument holds document and test against each other.
var vectors = []struct {
	seed, offset uint64
	hex          string // 16 bytes
}{
	{0, 0, "afcd1d7b39a820e2f465b9a16a9e786e"},
	{1, 0, "c15c0289ec2d0a9167ec8e65a18debbe"},
	{1, 5, "2d0a9167ec8e65a18debbe5e5532fbee"},
	{math.MaxUint64, 0, "202c651b7771d9e4c982f6db67f89fe9"},
	{1, 1<<32 + 3, "e9fa791628a73fa5a4b7c961d8d8dae1"},
}

var digests = []struct {
	size int
	hex  string // SHA-256 of the first size bytes of seed 1
}{
	{0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{1, "d1bbd73bb09190bfb883056771e22e997541ed20079793bf33975fe1654581c3"},
	{1024, "fb7b923c15a037cd5cddb90a445a0af795376a58896ba81b6677fcbf75d7bba7"},
	{1048576, "85b66b3a5816d686deb42f2d2473d9a7121ceb75c822b838f958c76ca86ed8ea"},
}

const (
	vectorID     = "000102030405060708090a0b0c0d0e0f"
	vectorHeader = "000102030405060708090a0b0c0d0e0f00000000000004000000000000000001"
	// The same, but open: at most 1024 bytes.
	vectorOpen = "000102030405060708090a0b0c0d0e0f80000000000004000000000000000001"
)

func TestPayloadVectors(t *testing.T) {
	for _, v := range vectors {
		b := make([]byte, 16)
		Payload(b, v.seed, v.offset)
		if got := hex.EncodeToString(b); got != v.hex {
			t.Errorf("seed %d offset %d: %s, expected %s", v.seed, v.offset, got, v.hex)
		}
	}
	for _, v := range digests {
		b := make([]byte, v.size)
		Payload(b, 1, 0)
		sum := sha256.Sum256(b)
		if got := hex.EncodeToString(sum[:]); got != v.hex {
			t.Errorf("%d bytes: %s, expected %s", v.size, got, v.hex)
		}
	}
}

func TestHeaderVector(t *testing.T) {
	id, err := ParseTransferID(vectorID)
	if err != nil {
		t.Fatal(err)
	}
	b := Header{ID: id, SizeBytes: 1024, Seed: 1}.Append(nil)
	if got := hex.EncodeToString(b); got != vectorHeader {
		t.Errorf("header %s, expected %s", got, vectorHeader)
	}
	b = Header{ID: id, SizeBytes: 1024, Seed: 1, Open: true}.Append(nil)
	if got := hex.EncodeToString(b); got != vectorOpen {
		t.Errorf("open header %s, expected %s", got, vectorOpen)
	}
}

func TestVectorsInDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/driver-contract.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	want := []string{vectorHeader, vectorOpen}
	for _, v := range vectors {
		want = append(want, fmt.Sprintf("| %d | %d | `%s` |", v.seed, v.offset, v.hex))
	}
	for _, v := range digests {
		want = append(want, fmt.Sprintf("| %d | `%s` |", v.size, v.hex))
	}
	for _, c := range Codes {
		want = append(want, "| `"+string(c)+"` |")
	}
	for _, w := range want {
		if !strings.Contains(doc, w) {
			t.Errorf("the document lacks %s", w)
		}
	}
}

func TestParseHeader(t *testing.T) {
	for _, open := range []bool{false, true} {
		h := Header{ID: TransferID{1, 2}, SizeBytes: MaxSize, Seed: math.MaxUint64, Open: open}
		got, err := ParseHeader(h.Append(nil))
		if err != nil || got != h {
			t.Errorf("read %+v, %v, expected %+v", got, err, h)
		}
		h.SizeBytes++
		if got, err := ParseHeader(h.Append(nil)); err == nil || got.ID != h.ID {
			t.Errorf("a header beyond MaxSize: %+v, %v, expected an error and the identity", got, err)
		}
	}
	for _, n := range []int{0, HeaderSize - 1, HeaderSize + 1} {
		if _, err := ParseHeader(make([]byte, n)); err == nil {
			t.Errorf("a header of %d bytes was read", n)
		}
	}
}

func TestParseChunkLength(t *testing.T) {
	for _, c := range []struct {
		hex  string
		want int
		text string // of the error; empty: none
	}{
		{"00000000", 0, ""}, {"00000001", 1, ""}, {"00100000", MaxChunk, ""},
		{"00100001", 0, "1048577"}, {"ffffffff", 0, "4294967295"}, {"000000", 0, "3 bytes"}, {"0000000000", 0, "5 bytes"}, {"", 0, "0 bytes"},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		n, err := ParseChunkLength(b)
		if n != c.want || (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %d, %v, expected %d and an error with %q", c.hex, n, err, c.want, c.text)
		}
		if err == nil && !bytes.Equal(AppendChunkLength(nil, n), b) {
			t.Errorf("%s was written as %x", c.hex, AppendChunkLength(nil, n))
		}
	}
}

func FuzzParseChunkLength(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0, 0x10, 0, 1})
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ParseChunkLength(b)
		if err == nil && (n > MaxChunk || !bytes.Equal(AppendChunkLength(nil, n), b)) {
			t.Errorf("%x was read as %d", b, n)
		}
	})
}

func TestParseTransferID(t *testing.T) {
	for s, ok := range map[string]bool{
		vectorID: true, strings.ToUpper(vectorID): false, vectorID[1:]: false, vectorID + "0": false,
		"": false, "g" + vectorID[1:]: false, strings.Repeat("é", 16): false,
	} {
		if _, err := ParseTransferID(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add(Header{SizeBytes: 1024, Seed: 1}.Append(nil))
	f.Add(Header{SizeBytes: MaxSize, Seed: 1, Open: true}.Append(nil))
	f.Add([]byte("short"))
	f.Add(bytes.Repeat([]byte{0xff}, HeaderSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err == nil && !bytes.Equal(h.Append(nil), b) {
			t.Errorf("%x was read as %+v", b, h)
		}
	})
}

// FuzzPayload: any part of the stream is the same, however it is asked for,
// and Verify finds the one byte that is not.
func FuzzPayload(f *testing.F) {
	f.Add(uint64(1), uint64(5), uint16(16), uint16(3))
	f.Add(uint64(math.MaxUint64), uint64(1<<40-1), uint16(5000), uint16(4097))
	f.Fuzz(func(t *testing.T, seed, offset uint64, size, at uint16) {
		offset %= MaxSize
		whole := make([]byte, size)
		Payload(whole, seed, offset)
		parts := make([]byte, size)
		cut := 0
		if size > 0 {
			cut = int(at) % int(size)
		}
		Payload(parts[:cut], seed, offset)
		Payload(parts[cut:], seed, offset+uint64(cut))
		if !bytes.Equal(whole, parts) {
			t.Fatalf("seed %d offset %d size %d: made in two parts at %d it is another", seed, offset, size, cut)
		}
		if i := Verify(whole, seed, offset); i != -1 {
			t.Fatalf("Verify finds fault at %d", i)
		}
		if size > 0 {
			whole[cut] ^= 0x10
			if i := Verify(whole, seed, offset); i != cut {
				t.Fatalf("Verify finds fault at %d, expected %d", i, cut)
			}
		}
	})
}

func BenchmarkPayload(b *testing.B) {
	buf := make([]byte, 32<<10)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		Payload(buf, 1, 0)
	}
}

func BenchmarkVerify(b *testing.B) {
	buf := make([]byte, 32<<10)
	Payload(buf, 1, 0)
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if Verify(buf, 1, 0) >= 0 {
			b.Fatal("not verified")
		}
	}
}
