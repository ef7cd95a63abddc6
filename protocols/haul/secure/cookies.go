package secure

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// CookieSize is the size of a cookie in bytes.
const CookieSize = 16

// cookiePeriod is how long the key of cookies is the same.
const cookiePeriod = 2 * time.Minute

// Cookies makes and checks cookies: by returning one, the sender of a hello
// proves that it receives at the address that it sends from. The server keeps
// nothing of a hello until then. A cookie is the first 16 bytes of
// HMAC-SHA256(key of the period, address | port | hello); the key of a period
// is HMAC-SHA256(secret, number of the period). Its methods may run at the same
// time.
type Cookies struct{ secret [sha256.Size]byte }

// NewCookies draws a secret.
func NewCookies(random io.Reader) (*Cookies, error) {
	if random == nil {
		return nil, errors.New("no source of random bytes for the secret of cookies")
	}
	c := new(Cookies)
	if _, err := io.ReadFull(random, c.secret[:]); err != nil {
		return nil, fmt.Errorf("read random bytes for the secret of cookies: %w", err)
	}
	return c, nil
}

// Make is the cookie for a sender and its first message.
func (c *Cookies) Make(from netip.AddrPort, hello []byte, now time.Duration) []byte {
	return c.cookie(from, hello, period(now))
}

// Check reports whether a cookie was made for this sender and first message, in
// this period of two minutes or the one before.
func (c *Cookies) Check(from netip.AddrPort, hello, cookie []byte, now time.Duration) bool {
	p := period(now)
	return hmac.Equal(cookie, c.cookie(from, hello, p)) || hmac.Equal(cookie, c.cookie(from, hello, p-1))
}

func period(now time.Duration) int64 {
	if now < 0 { // division rounds towards zero
		return int64((now+1)/cookiePeriod) - 1
	}
	return int64(now / cookiePeriod)
}

func (c *Cookies) cookie(from netip.AddrPort, hello []byte, period int64) []byte {
	mac := hmac.New(sha256.New, c.secret[:])
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(period))
	mac.Write(number[:])
	mac = hmac.New(sha256.New, mac.Sum(nil))
	address := from.Addr().As16() // of IPv4 the mapped one
	mac.Write(address[:])
	mac.Write(binary.BigEndian.AppendUint16(nil, from.Port()))
	mac.Write(hello)
	return mac.Sum(nil)[:CookieSize]
}
