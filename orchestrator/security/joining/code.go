package joining

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"linktrial/internal/identity"
	"linktrial/internal/joincode"
	"linktrial/orchestrator/security/authority"
)

// How long a code can be used.
const (
	UsualLife = 10 * time.Minute
	minLife   = time.Minute
	maxLife   = time.Hour
)

// MaxWrong is how many wrong tries close a code.
const MaxWrong = 5

// ErrLife is returned for a time that a code cannot live.
var ErrLife = errors.New("time for which a code is valid")

// Authority is what is used of [authority.Authority].
type Authority interface {
	CheckMode() error
	ShownHash() [32]byte
	CreateToken(ctx context.Context, node string, valid time.Duration, by string) (identity.Token, time.Time, error)
	Identities(ctx context.Context) ([]authority.NodeIdentity, error)
}

// Config of a [Joining].
type Config struct {
	Authority Authority
	Version   string // of the orchestrator
	Logger    *slog.Logger
	// Announce has laptops on the network find the orchestrator until stop is called; nil:
	// they need its address.
	Announce func() (stop func(), err error)
	Now      func() time.Time // nil: time.Now
}

// Joining is the codes of one orchestrator. Its methods may be called from several
// goroutines.
type Joining struct {
	cfg Config
	log *slog.Logger
	now func() time.Time

	mu        sync.Mutex
	newest    *code // nil: none was made
	exchanges map[number]*exchange
	names     map[string]time.Time // until when a name is kept for the laptop that got its token

	// announcing is held while the announcement is begun or ended, which takes time.
	announcing sync.Mutex
	silence    func() // ends the announcement; nil: there is none
}

// State is what became of a code.
type State int

// States.
const (
	None State = iota // no code was made
	Open
	Expired
	Tried  // closed after [MaxWrong] wrong tries
	Closed // by a person, by a newer code, or as the orchestrator stops
)

// code is a code with its state.
type code struct {
	joincode.Code
	by      string
	expires time.Time
	wrong   int
	joined  []Joined
	state   State
	timer   *time.Timer
}

// Joined is a laptop that got a token.
type Joined struct {
	Name string
	At   time.Time
}

// Status is the state of the newest code. Of none, all else is zero.
type Status struct {
	State     State
	Expires   time.Time
	TriesLeft int
	Joined    []Joined
}

// New returns the codes of an orchestrator, none of them open.
func New(cfg Config) *Joining {
	j := &Joining{cfg: cfg, log: cfg.Logger, now: cfg.Now, exchanges: map[number]*exchange{}, names: map[string]time.Time{}}
	if j.log == nil {
		j.log = slog.New(slog.DiscardHandler)
	}
	if j.now == nil {
		j.now = time.Now
	}
	return j
}

// Open makes a code, and closes the one that is open. valid is how long it can be used;
// zero: [UsualLife]. Errors are [ErrLife] and [authority.ErrPlain].
func (j *Joining) Open(valid time.Duration, by string) (c joincode.Code, expires time.Time, err error) {
	if err := j.cfg.Authority.CheckMode(); err != nil {
		return joincode.Code{}, time.Time{}, fmt.Errorf("joining by a code takes TLS: %w", err)
	}
	if valid == 0 {
		valid = UsualLife
	}
	if valid < minLife || valid > maxLife {
		return joincode.Code{}, time.Time{}, fmt.Errorf("%w: %s, expected %s to %s", ErrLife, valid, minLife, maxLife)
	}
	made := &code{Code: joincode.New(), by: by, expires: j.now().Add(valid), state: Open}
	j.mu.Lock()
	j.end(Closed)
	j.newest = made
	made.timer = time.AfterFunc(valid, func() { j.expire(made) })
	j.mu.Unlock()
	j.log.Info("a code to join by is open", "by", by, "valid_until", made.expires)
	j.announce()
	return made.Code, made.expires, nil
}

// Close closes the code that is open, and reports whether one was.
func (j *Joining) Close(by string) bool {
	j.mu.Lock()
	was := j.end(Closed)
	j.mu.Unlock()
	if was {
		j.log.Info("the code to join by was closed", "by", by)
	}
	j.announce()
	return was
}

// Stop closes the code that is open, with its announcement.
func (j *Joining) Stop() { j.Close("the orchestrator's end") }

// Now is the orchestrator's time of day.
func (j *Joining) Now() time.Time { return j.now() }

// Status returns the state of the newest code.
func (j *Joining) Status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	c := j.newest
	if c == nil {
		return Status{}
	}
	j.open() // it may have expired now
	return Status{State: c.state, Expires: c.expires, TriesLeft: MaxWrong - c.wrong, Joined: slices.Clone(c.joined)}
}

// open returns the code that is open now; nil: none is.
func (j *Joining) open() *code {
	if c := j.newest; c != nil && c.state == Open && !j.now().Before(c.expires) {
		j.end(Expired)
	}
	if j.newest == nil || j.newest.state != Open {
		return nil
	}
	return j.newest
}

// end ends the code that is open, and reports whether one was.
func (j *Joining) end(as State) bool {
	c := j.newest
	if c == nil || c.state != Open {
		return false
	}
	c.state = as
	c.timer.Stop()
	return true
}

func (j *Joining) expire(c *code) {
	j.mu.Lock()
	if j.newest == c {
		j.end(Expired)
	}
	j.mu.Unlock()
	j.announce()
}

// announce begins the announcement where a code is open, and ends it where none is.
func (j *Joining) announce() {
	if j.cfg.Announce == nil {
		return
	}
	j.announcing.Lock()
	defer j.announcing.Unlock()
	j.mu.Lock()
	open := j.open() != nil
	j.mu.Unlock()
	switch {
	case open && j.silence == nil:
		stop, err := j.cfg.Announce()
		if err != nil {
			j.log.Warn("laptops cannot find this orchestrator by themselves and join with --address", "reason", err)
			return
		}
		j.silence = stop
	case !open && j.silence != nil:
		j.silence()
		j.silence = nil
	}
}
