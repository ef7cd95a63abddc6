package contract

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

const (
	vectorID     = "000102030405060708090a0b0c0d0e0f"
	vectorHeader = "000102030405060708090a0b0c0d0e0f0000000000000400"
	// The same, but open: at most 1024 bytes.
	vectorOpen = "000102030405060708090a0b0c0d0e0f8000000000000400"
)

func TestHeaderVector(t *testing.T) {
	id, err := ParseTransferID(vectorID)
	if err != nil {
		t.Fatal(err)
	}
	b := Header{ID: id, SizeBytes: 1024}.Append(nil)
	if got := hex.EncodeToString(b); got != vectorHeader {
		t.Errorf("header %s, expected %s", got, vectorHeader)
	}
	b = Header{ID: id, SizeBytes: 1024, Open: true}.Append(nil)
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
		h := Header{ID: TransferID{1, 2}, SizeBytes: MaxSize, Open: open}
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
	f.Add(Header{SizeBytes: 1024}.Append(nil))
	f.Add(Header{SizeBytes: MaxSize, Open: true}.Append(nil))
	f.Add([]byte("short"))
	f.Add(bytes.Repeat([]byte{0xff}, HeaderSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err == nil && !bytes.Equal(h.Append(nil), b) {
			t.Errorf("%x was read as %+v", b, h)
		}
	})
}
