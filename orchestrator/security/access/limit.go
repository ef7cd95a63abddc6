package access

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"linktrial/orchestrator/security/admission"
)

// How often a password may be tried: some in a row, for people mistype, then
// slowly. At one in half a minute the shortest password that is taken outlasts
// anybody who guesses.
const (
	userBurst     = 5
	userInterval  = 30 * time.Second
	everyBurst    = 20 // at a user, from everywhere
	everyInterval = 10 * time.Second
	codeBurst     = 10
	codeInterval  = 5 * time.Minute
	addressBurst  = 20
	addressPause  = 5 * time.Second
	maxLimiters   = 10_000
	maxRetryAfter = time.Hour
)

// allowance is how many attempts may be made in a row, and how often further ones.
type allowance struct {
	burst    int
	interval time.Duration
}

// allowances are those of a [limiter].
type allowances struct{ pair, user, address allowance }

var (
	passwordAllowances = allowances{pair: allowance{userBurst, userInterval}, user: allowance{everyBurst, everyInterval}, address: allowance{addressBurst, addressPause}}
	// Of a million codes three are good at a time, and who tries them has the password: at
	// one in five minutes, guessing for a year succeeds with a probability of a quarter.
	codeAllowances = allowances{pair: allowance{userBurst, userInterval}, user: allowance{codeBurst, codeInterval}, address: allowance{addressBurst, addressPause}}
)

// limiter bounds attempts at passwords or codes: of each address, of each address at each user,
// and of all addresses at a user, but those from which the user has logged in. So
// nobody who guesses from elsewhere keeps a user out.
type limiter struct {
	now   func() time.Time
	allow allowances

	mu        sync.Mutex
	users     *lru.Cache[string, *rate.Limiter] // from everywhere
	pairs     *lru.Cache[pair, *rate.Limiter]
	proven    *lru.Cache[pair, struct{}] // the user has logged in from there
	addresses *lru.Cache[string, *rate.Limiter]
	// told bounds how often a refused attempt has an entry in the audit log.
	told rate.Sometimes
}

func newLimiter(now func() time.Time, allow allowances) (*limiter, error) {
	l := &limiter{now: now, allow: allow, told: rate.Sometimes{Interval: time.Minute}}
	var err error
	if l.pairs, err = lru.New[pair, *rate.Limiter](maxLimiters); err != nil {
		return nil, err
	}
	if l.proven, err = lru.New[pair, struct{}](maxLimiters); err != nil {
		return nil, err
	}
	if l.users, err = lru.New[string, *rate.Limiter](maxLimiters); err != nil {
		return nil, err
	}
	if l.addresses, err = lru.New[string, *rate.Limiter](maxLimiters); err != nil {
		return nil, err
	}
	return l, nil
}

// pair is a user and an address.
type pair struct{ user, address string }

func pick[K comparable](c *lru.Cache[K, *rate.Limiter], key K, allow allowance) *rate.Limiter {
	r, ok := c.Get(key)
	if !ok {
		r = rate.NewLimiter(rate.Every(allow.interval), allow.burst)
		c.Add(key, r)
	}
	return r
}

// take counts an attempt, or says how long to wait before the next. The user is empty
// for a name that no user can have.
func (l *limiter) take(user, address string) (wait time.Duration) {
	at := pair{user, admission.Network(address)}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	var taken []*rate.Reservation
	all := []*rate.Limiter{pick(l.addresses, at.address, l.allow.address), pick(l.pairs, at, l.allow.pair)}
	if !l.proven.Contains(at) {
		all = append(all, pick(l.users, user, l.allow.user))
	}
	for _, r := range all {
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

// forgive forgets the attempts at a user's password from an address: it was right.
func (l *limiter) forgive(user, address string) {
	at := pair{user, admission.Network(address)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proven.Add(at, struct{}{})
	l.pairs.Remove(at)
}

// seconds is a wait in whole seconds, as Retry-After has it.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
