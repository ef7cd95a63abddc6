package discovery

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

var (
	one = Service{Instance: "laptop-a", ID: "0b63aa", Version: "1.4.0", Port: 7700}
	at  = []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fd00::1")}
)

func TestAnswer(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		b, err := one.answer(77, at, legacy)
		require.NoError(t, err)
		f, ok := readAnswer(b)
		require.True(t, ok)
		require.Equal(t, Found{Instance: "laptop-a", ID: "0b63aa", Version: "1.4.0", Port: 7700, Addresses: at}, f)
		var m dnsmessage.Message
		require.NoError(t, m.Unpack(b))
		require.Equal(t, legacy, m.ID == 77)
		require.Equal(t, legacy, len(m.Questions) == 1)
	}
}

// Names of machines and versions that are no names of DNS are made some.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{"laptop.example.org": "laptop", "Ölkanne 7": "-lkanne-7", "": "orchestrator", ".x": "orchestrator", strings.Repeat("a", 300): strings.Repeat("a", maxInstance)} {
		s := Service{Instance: name, Version: strings.Repeat("9 ", 200), Port: 1}
		b, err := s.answer(1, at, true)
		require.NoError(t, err, name)
		f, ok := readAnswer(b)
		require.True(t, ok)
		require.Equal(t, want, f.Instance)
		require.Len(t, f.Version, maxText)
	}
}

func TestQuestion(t *testing.T) {
	b, err := question()
	require.NoError(t, err)
	_, ok := readQuestion(b)
	require.True(t, ok)
	answer, err := one.answer(1, at, true)
	require.NoError(t, err)
	_, ok = readQuestion(answer)
	require.False(t, ok, "an answer is no question")
	_, ok = readAnswer(b)
	require.False(t, ok, "a question is no answer")
	for _, n := range []int{0, 11, 12, len(b) - 1} {
		_, ok := readQuestion(b[:n])
		require.False(t, ok, "the first %d bytes", n)
	}
	other := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("_http._tcp.local."), Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}}
	b, err = other.Pack()
	require.NoError(t, err)
	_, ok = readQuestion(b)
	require.False(t, ok, "another service")
}

func TestIncomplete(t *testing.T) {
	b, err := one.answer(1, nil, true)
	require.NoError(t, err)
	_, ok := readAnswer(b)
	require.False(t, ok, "without an address")
	nowhere := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("224.0.0.1"), netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("::ffff:10.0.0.1")}
	b, err = one.answer(1, nowhere, true)
	require.NoError(t, err)
	_, ok = readAnswer(b)
	require.False(t, ok, "with addresses that lead nowhere")
}

func TestSeveral(t *testing.T) {
	a := Found{Instance: "a", ID: "1", Port: 1, Addresses: at[:1]}
	again := Found{Instance: "a", ID: "1", Port: 1, Addresses: at[:2]}
	b := Found{Instance: "a", ID: "2", Port: 1, Addresses: at[2:]}
	var all []Found
	for _, f := range []Found{b, a, again, a} {
		all = add(all, f)
	}
	require.Len(t, all, 2, "two with one name")
	require.Equal(t, at[:2], all[0].Addresses)
	for i := range 2 * maxFound {
		all = add(all, Found{Instance: "x", Port: i})
	}
	require.Len(t, all, maxFound)

	for _, x := range []struct {
		from []string // in the order of the answers
		want string
	}{
		{[]string{"fe80::2%eth0"}, "10.1.2.3:7700"},       // none that is known
		{[]string{"fe80::1%eth0"}, "[fe80::1%eth0]:7700"}, // no IPv4 between the two machines
		{[]string{"fe80::1%eth0", "10.1.2.3"}, "10.1.2.3:7700"},
		{[]string{"fd00::1"}, "[fd00::1]:7700"},
	} {
		var all []Found
		for _, from := range x.from {
			f := Found{Instance: "a", Port: 7700, Addresses: []netip.Addr{at[1], at[2], at[0]}}
			f.on("eth0", netip.MustParseAddr(from))
			all = add(all, f)
		}
		require.Equal(t, x.want, finished(all)[0].Address(), x.from)
		require.Len(t, all[0].Addresses, 3)
	}
}

func FuzzReadAnswer(f *testing.F) {
	b, err := one.answer(77, at, true)
	require.NoError(f, err)
	f.Add(b)
	q, err := question()
	require.NoError(f, err)
	f.Add(q)
	f.Fuzz(func(t *testing.T, b []byte) {
		readQuestion(b)
		r, ok := readAnswer(b)
		if !ok {
			return
		}
		if strings.ContainsFunc(r.Instance+r.Version+r.ID, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q, %q, %q for a terminal", r.Instance, r.Version, r.ID)
		}
		r.on("eth0", r.Addresses[0])
		if _, err := netip.ParseAddrPort(r.Address()); err != nil {
			t.Fatal(err)
		}
	})
}
