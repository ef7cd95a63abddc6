package core

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"linktrial/protocols/haul/code"
	"linktrial/protocols/haul/wire"
)

// TestVectors holds that the packets of docs/haul-protocol.md are those of the code.
func TestVectors(t *testing.T) {
	page, err := os.ReadFile("../../../docs/haul-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), "")
	for name, b := range vectors(t) {
		if !strings.Contains(text, hex.EncodeToString(b)) {
			t.Errorf("%s is %x, which docs/haul-protocol.md does not have", name, b)
		}
	}
}

func vectors(t *testing.T) map[string][]byte {
	v := map[string][]byte{}
	var plain Config
	plain.Secure.Plain = true
	for name, config := range map[string]Config{"plain": plain, "NN": {}} {
		client, server := config, config
		client.Random, server.Random = random(1), random(2)
		c, err := Dial(client, addresses[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewListener(server)
		if err != nil {
			t.Fatal(err)
		}
		var buf [9000]byte
		now := outagePatience
		packet := func(of *Conn, what string) []byte {
			n, _ := of.Transmit(now, buf[:])
			v[name+" "+what] = append([]byte(nil), buf[:n]...)
			return append([]byte(nil), buf[:n]...)
		}
		conn, _, _ := l.Receive(now, packet(c, "hello"), addresses[0], 0, nil)
		c.Receive(now, packet(conn, "answer"), addresses[1], 0)
		if err := c.Send(now, Message{Stream: 3, Data: []byte("radio check")}); err != nil {
			t.Fatal(err)
		}
		packet(c, "first data packet")
	}
	item := wire.AppendItem(nil, &wire.Item{Last: true, Stream: 3, Data: []byte("radio check")}, true)
	v["item"] = item
	v["symbol frame"] = append(wire.AppendSymbol(nil, 300), item...)
	symbols := []code.Symbol{{ID: 300, Data: item}, {ID: 302, Data: []byte{0xc0, 3, 1}}}
	v["repair frame"] = append(wire.AppendRepair(nil, 300, 3, []byte{2}), code.Encode(nil, 1000, symbols)...)
	v["acknowledgement frame"] = wire.AppendAck(nil, &wire.Ack{Largest: 1000, Received: 990, Bursts: 4, At: 123456,
		Delay: 800, Credit: 4 << 20, Rank: 1, Next: 280, Ranges: []wire.Range{{Missing: 2, Arrived: 15}}}, 100)
	v["close frame"] = wire.AppendClose(nil, wire.Close{Abort: true, Reason: "enough"})
	token := []byte("0123456789abcdef")
	v["challenge frame"] = wire.AppendToken(nil, wire.FrameChallenge, token)
	v["response frame"] = wire.AppendToken(nil, wire.FrameResponse, token)
	v["void item"] = wire.AppendItem(nil, &wire.Item{Kind: wire.ItemVoid, Number: 300, Offset: 2}, false)
	v["cancel item"] = wire.AppendItem(nil, &wire.Item{Kind: wire.ItemCancel, Stream: 3, Number: 9, Offset: 1400}, false)
	v["finish item"] = wire.AppendItem(nil, &wire.Item{Kind: wire.ItemFinish, Stream: 3, Number: 10}, false)
	return v
}
