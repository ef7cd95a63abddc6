package wire

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzPacket holds that what is read of a packet is what was written: a packet
// that can be read is written again from what was read.
func FuzzPacket(f *testing.F) {
	f.Add(AppendHello(nil, Hello{Client: 1, Attempt: 2, Cookie: make([]byte, 16), Message: []byte("hello")}))
	f.Add(AppendAnswer(nil, Answer{Client: 1, Attempt: 2, Message: []byte("answer")}))
	f.Add(AppendRetry(nil, 7, make([]byte, 16)))
	f.Add(AppendRefusal(nil, 7, "no"))
	f.Add(AppendData(nil, 7, 1<<23, true))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		if h, err := ParseHello(p); err == nil {
			again, err := ParseHello(AppendHello(nil, h))
			if err != nil || !reflect.DeepEqual(h, again) {
				t.Fatalf("hello %+v became %+v, %v", h, again, err)
			}
		}
		if a, err := ParseAnswer(p); err == nil && !bytes.Equal(AppendAnswer(nil, a), p) {
			t.Fatalf("answer %+v is written as %x", a, AppendAnswer(nil, a))
		}
		if id, cookie, err := ParseRetry(p); err == nil && !bytes.Equal(AppendRetry(nil, id, cookie), p) {
			t.Fatalf("retry is written as %x", AppendRetry(nil, id, cookie))
		}
		if id, sentence, err := ParseRefusal(p); err == nil && !bytes.Equal(AppendRefusal(nil, id, sentence)[1:], p[1:]) {
			t.Fatalf("refusal is written as %x", AppendRefusal(nil, id, sentence))
		}
		if id, n, err := ParseData(p); err == nil {
			k, _, _ := KindOf(p)
			if again := AppendData(nil, id, uint64(n), k == KindAsking); !bytes.Equal(again, p[:DataHeader]) {
				t.Fatalf("data header is written as %x", again)
			}
		}
	})
}

// FuzzFrame holds that a frame that can be read is written again with the same bytes.
func FuzzFrame(f *testing.F) {
	a := Ack{Largest: 9, Received: 7, Bursts: 1, At: 5, Delay: 6, CE: 1, Credit: 1 << 20, Rank: 2, Next: 3, Ranges: []Range{{1, 2}, {3, 4}}}
	f.Add(AppendAck(nil, &a, 1000))
	f.Add(AppendClose(AppendPing(nil), Close{Abort: true, Reason: "enough"}))
	f.Add(AppendRequest(AppendSuspend(nil), Request{Delay: 1000}))
	f.Add(append(AppendSymbol(nil, 300), 1, 2, 3))
	f.Add(append(AppendRepair(nil, 300, 256, []byte{1, 2}), 1, 2, 3))
	f.Add(append(AppendUnreliable(nil), 1, 2, 3))
	f.Add(AppendToken(AppendPing(nil), FrameChallenge, make([]byte, TokenSize)))
	f.Add(AppendToken(nil, FrameResponse, bytes.Repeat([]byte{7}, TokenSize)))
	f.Add(AppendToken(nil, FrameResponse, make([]byte, TokenSize))[:TokenSize])
	f.Fuzz(func(t *testing.T, b []byte) {
		var fr Frame
		for len(b) > 0 {
			rest, err := Next(b, &fr)
			if err != nil {
				return
			}
			if written := appendFrame(&fr); !bytes.Equal(written, b[:len(b)-len(rest)]) {
				t.Fatalf("%x is written as %x", b[:len(b)-len(rest)], written)
			}
			b = rest
		}
	})
}

func appendFrame(f *Frame) []byte {
	switch f.Kind {
	case FramePing:
		return AppendPing(nil)
	case FrameSuspend:
		return AppendSuspend(nil)
	case FrameAck:
		return AppendAck(nil, &f.Ack, 1<<20)
	case FrameRequest:
		return AppendRequest(nil, f.Request)
	case FrameClose:
		return AppendClose(nil, f.Close)
	case FrameChallenge, FrameResponse:
		return AppendToken(nil, f.Kind, f.Token)
	case FrameSymbol:
		return append(AppendSymbol(nil, f.Symbol.ID), f.Symbol.Data...)
	case FrameUnreliable:
		return append(AppendUnreliable(nil), f.Symbol.Data...)
	default:
		return append(AppendRepair(nil, f.Repair.First, f.Repair.Count, f.Repair.Skip), f.Repair.Data...)
	}
}

// FuzzItem holds the same of items.
func FuzzItem(f *testing.F) {
	for _, i := range []Item{
		{Class: UnreliableSequenced, Last: true, Stream: 3, Number: 200, Tag: 9, Data: []byte("abc")},
		{Stream: 1, Number: 1, Offset: 5000, Data: []byte("abc")},
		{Kind: ItemVoid, Number: 7, Offset: 2},
		{Kind: ItemCancel, Number: 7, Offset: 100},
		{Kind: ItemFinish, Stream: MaxStream, Number: 7},
	} {
		f.Add(AppendItem(nil, &i, false))
		f.Add(AppendItem(nil, &i, true))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var i Item
		for len(b) > 0 {
			rest, err := NextItem(b, &i)
			if err != nil {
				return
			}
			end := b[0]&flagEnd != 0
			if written := AppendItem(nil, &i, end); !bytes.Equal(written, b[:len(b)-len(rest)]) {
				t.Fatalf("%x is written as %x", b[:len(b)-len(rest)], written)
			}
			b = rest
		}
	})
}

func TestExpand(t *testing.T) {
	for _, expected := range []uint64{0, 1, 1 << 23, 1<<24 - 1, 1 << 24, 1<<40 + 12345} {
		for _, off := range []int64{-1 << 22, -1, 0, 1, 1<<23 - 1} {
			n := int64(expected) + off
			if n < 0 {
				continue
			}
			if got := Expand(uint32(n)&0xffffff, expected); got != uint64(n) {
				t.Errorf("number %d near %d is read as %d", n, expected, got)
			}
		}
	}
}
