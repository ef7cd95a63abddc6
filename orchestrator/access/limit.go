package access

import (
	"fmt"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// How often a password may be tried: some in a row, for people mistype, then
// slowly. At one in half a minute the shortest password that is taken outlasts
// anybody who guesses.
const (
	userBurst     = 5
	userInterval  = 30 * time.Second
	addressBurst  = 20
	addressPause  = 5 * time.Second
	maxLimiters   = 10_000
	maxRetryAfter = time.Hour
)

// limiter bounds attempts at passwords, by user and by address.
type limiter struct {
	now func() time.Time

	mu        sync.Mutex
	users     *lru.Cache[string, *rate.Limiter]
	addresses *lru.Cache[string, *rate.Limiter]
	// told bounds how often the audit log hears of refused attempts.
	told rate.Sometimes
}

func newLimiter(now func() time.Time) (*limiter, error) {
	l := &limiter{now: now, told: rate.Sometimes{Interval: time.Minute}}
	var err error
	if l.users, err = lru.New[string, *rate.Limiter](maxLimiters); err != nil {
		return nil, err
	}
	if l.addresses, err = lru.New[string, *rate.Limiter](maxLimiters); err != nil {
		return nil, err
	}
	return l, nil
}

func pick(c *lru.Cache[string, *rate.Limiter], key string, every time.Duration, burst int) *rate.Limiter {
	r, ok := c.Get(key)
	if !ok {
		r = rate.NewLimiter(rate.Every(every), burst)
		c.Add(key, r)
	}
	return r
}

// take counts an attempt, or says how long to wait before the next.
func (l *limiter) take(user, address string) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var taken []*rate.Reservation
	for _, r := range []*rate.Limiter{
		pick(l.users, user, userInterval, userBurst),
		pick(l.addresses, network(address), addressPause, addressBurst),
	} {
		x := r.ReserveN(now, 1)
		taken = append(taken, x)
		wait = max(wait, x.DelayFrom(now))
	}
	if wait > 0 {
		for _, x := range taken {
			x.CancelAt(now)
		}
	}
	return min(wait, maxRetryAfter)
}

// forgive forgets the attempts at a user's password: it was right.
func (l *limiter) forgive(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users.Remove(user)
}

// network is what one who guesses has one of: the address, or with IPv6 its /64.
func network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	p, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return p.String()
}

// seconds is a wait in whole seconds, as Retry-After has it.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func tooMany(wait time.Duration) string {
	return fmt.Sprintf("too many attempts at passwords: try again in %d s", seconds(wait))
}
