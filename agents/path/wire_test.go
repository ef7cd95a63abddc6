package path

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor"
)

func TestMessages(t *testing.T) {
	key, other := NewKey("r1", []byte("signature")), NewKey("r2", []byte("signature"))
	m := message{kind: answer, nonce: [nonceBytes]byte{1, 2}, padding: 7, text: []byte("text")}
	b := m.padded(&key)
	require.Len(t, b, headBytes+4+7)
	got, err := decodeDatagram(&key, b)
	require.NoError(t, err)
	require.Equal(t, m, got)
	for name, change := range map[string]func([]byte) []byte{
		"shorter":       func(b []byte) []byte { return b[:len(b)-1] },
		"longer":        func(b []byte) []byte { return append(b, 0) },
		"without text":  func(b []byte) []byte { return b[:headBytes] },
		"empty":         func(b []byte) []byte { return nil },
		"another text":  func(b []byte) []byte { b[headBytes] ^= 1; return b },
		"another nonce": func(b []byte) []byte { b[12] ^= 1; return b },
		"another kind":  func(b []byte) []byte { b[5] = byte(question); return b },
		"another tag":   func(b []byte) []byte { b[tagAt] ^= 1; return b },
		"no magic":      func(b []byte) []byte { b[0] = 0; return b },
		"a long text":   func(b []byte) []byte { b[6] = 0xff; return b },
	} {
		_, err := decodeDatagram(&key, change(m.padded(&key)))
		require.Error(t, err, name)
	}
	_, err = decodeDatagram(&other, b)
	require.ErrorContains(t, err, "of another run")
}

// What a node says of itself fits the question's size, whatever it has to say.
func TestFit(t *testing.T) {
	s := executor.NodeState{Fault: strings.Repeat("ä", 200)}
	for range 30 {
		s.Listeners = append(s.Listeners, executor.ListenerReport{Treatment: "a-treatment", Port: 5001, Message: strings.Repeat("long ", 100), Outage: strings.Repeat("x", 300)})
	}
	for _, most := range []int{0, 1, 2, 100, 200, 1000, 4000, 1 << 20} {
		b := fit(s, most)
		require.LessOrEqual(t, len(b), most)
		if most >= 100 {
			var got executor.NodeState
			require.NoError(t, json.Unmarshal(b, &got), "%d", most)
			require.NotEmpty(t, got.Fault)
		}
	}
	one := executor.NodeState{Listeners: []executor.ListenerReport{{Treatment: "haul", Port: 5005, Up: true, UpFor: 1e15}}, Since: 1e12}
	b := fit(one, smallBytes-headBytes)
	var got executor.NodeState
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, one, got)
}

func FuzzDecodeDatagram(f *testing.F) {
	key := NewKey("r", nil)
	m := message{kind: question, padding: 3, text: []byte("{}")}
	f.Add(m.padded(&key))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeDatagram(&key, b)
		if err != nil {
			return
		}
		if got := m.padded(&key); len(got) != len(b) || string(got[:len(b)-m.padding]) != string(b[:len(b)-m.padding]) {
			t.Errorf("%x becomes %x", b, got)
		}
	})
}
