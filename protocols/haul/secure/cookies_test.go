package secure

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestCookies(t *testing.T) {
	c, err := NewCookies(random(3))
	if err != nil {
		t.Fatal(err)
	}
	from, hello := netip.MustParseAddrPort("192.0.2.1:4000"), []byte("hello")
	for _, now := range []time.Duration{0, time.Second, -time.Second, -cookiePeriod, 119 * time.Second, time.Hour, math.MaxInt64} {
		cookie := c.Make(from, hello, now)
		if len(cookie) != CookieSize {
			t.Fatalf("cookie has %d bytes", len(cookie))
		}
		if !c.Check(from, hello, cookie, now) {
			t.Errorf("at %v a cookie was refused", now)
		}
		if later := now + cookiePeriod; later > now && !c.Check(from, hello, cookie, later) {
			t.Errorf("a cookie of %v was refused two minutes later", now)
		}
		if later := now + 2*cookiePeriod; later > now && c.Check(from, hello, cookie, later) {
			t.Errorf("a cookie of %v was accepted four minutes later", now)
		}
		if c.Check(from, hello, cookie, now-cookiePeriod) {
			t.Errorf("a cookie of %v was accepted two minutes earlier", now)
		}
		mutations(cookie, func(m []byte) {
			if c.Check(from, hello, m, now) {
				t.Errorf("cookie %x was accepted in place of %x", m, cookie)
			}
		})
		for _, other := range []string{"192.0.2.1:4001", "192.0.2.2:4000", "[2001:db8::1]:4000"} {
			if c.Check(netip.MustParseAddrPort(other), hello, cookie, now) {
				t.Errorf("the cookie of %v was accepted from %s", from, other)
			}
		}
		if c.Check(from, []byte("hallo"), cookie, now) {
			t.Error("a cookie was accepted with another hello")
		}
		if mapped := netip.MustParseAddrPort("[::ffff:192.0.2.1]:4000"); !c.Check(mapped, hello, cookie, now) {
			t.Error("a cookie was refused from the same address, written as one of IPv6")
		}
	}
	other, _ := NewCookies(random(4))
	if other.Check(from, hello, c.Make(from, hello, 0), 0) {
		t.Error("a cookie of another secret was accepted")
	}
	if _, err := NewCookies(strings.NewReader("short")); err == nil {
		t.Error("a secret was made of 5 random bytes")
	}
}

func BenchmarkCookie(b *testing.B) {
	c, err := NewCookies(random(3))
	if err != nil {
		b.Fatal(err)
	}
	from, hello := netip.MustParseAddrPort("192.0.2.1:4000"), make([]byte, 100)
	cookie := c.Make(from, hello, 0)
	for b.Loop() {
		if !c.Check(from, hello, cookie, 0) {
			b.Fatal("refused")
		}
	}
}
