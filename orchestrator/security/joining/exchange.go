package joining

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"linktrial/internal/joincode"
	"linktrial/internal/joinexchange"
	"linktrial/orchestrator/security/admission"
)

// Bounds of exchanges, which anybody may begin. One takes a few KiB of memory and 0.15 ms.
const (
	maxExchanges = 16
	maxOfNetwork = 4 // of these, so that one machine does not keep others from joining
	exchangeLife = 30 * time.Second
)

// Errors of exchanges that callers branch on. None tells whether a code is open.
var (
	ErrCode = errors.New("the code was not accepted: it is mistyped, or it has ended, as it does after its time and after five wrong tries. Ask who opened it whether it is still open, or for a new one")
	ErrBusy = errors.New("other laptops are joining at this moment")
	// ErrOver is returned for an exchange that took too long, or ended before.
	ErrOver = errors.New("the exchange is over: one lasts for 30 s and ends once; run 'linktrial join' again")
	// ErrPoint is [joinexchange.ErrPoint].
	ErrPoint = joinexchange.ErrPoint
	// ErrSealed is returned for what a laptop that has the code has sealed otherwise than
	// it should.
	ErrSealed = errors.New("what the laptop has sealed is damaged")
)

type number [joinexchange.IDBytes]byte

// exchange is one that was begun. Messages that come twice find none.
type exchange struct {
	session *joinexchange.Session
	of      *code // nil: none was open
	network string
	ends    time.Time
}

// Begin begins an exchange with a laptop that calls from an address, and returns its
// number and the orchestrator's point. Errors are [ErrPoint], [ErrBusy] and
// [authority.ErrPlain].
func (j *Joining) Begin(from string, point []byte) (id, own []byte, err error) {
	if err := j.cfg.Authority.CheckMode(); err != nil {
		return nil, nil, fmt.Errorf("joining by a code takes TLS: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	network := admission.Network(from)
	if err := j.room(network); err != nil {
		return nil, nil, err
	}
	x := &exchange{of: j.open(), network: network, ends: j.now().Add(exchangeLife)}
	secret := joincode.New() // nobody's
	if x.of != nil {
		secret = x.of.Code
	}
	var n number
	rand.Read(n[:]) // never fails (crypto/rand, since Go 1.24)
	if own, x.session, err = joinexchange.Answer(secret, joinexchange.Binding{ID: n, Certificate: j.cfg.Authority.ShownHash()}, point); err != nil {
		return nil, nil, err
	}
	j.exchanges[n] = x
	return n[:], own, nil
}

// room reports why a network cannot begin an exchange now.
func (j *Joining) room(network string) error {
	now, same := j.now(), 0
	for n, x := range j.exchanges {
		switch {
		case !now.Before(x.ends):
			delete(j.exchanges, n)
		case x.network == network:
			same++
		}
	}
	if len(j.exchanges) >= maxExchanges || same >= maxOfNetwork {
		return fmt.Errorf("%w: %d exchanges are under way, %d of them from %s; try again in %.0f s", ErrBusy, len(j.exchanges), same, network, exchangeLife.Seconds())
	}
	return nil
}

// Finish ends an exchange. A confirmation that is wrong is a wrong try. Otherwise answer
// gets what the laptop has sealed, and Finish returns what it returns, sealed, with the
// orchestrator's confirmation. Errors are [ErrOver] and [ErrCode], and those of answer.
func (j *Joining) Finish(id, confirmation, sealed []byte, answer func(a *Admission, question []byte) ([]byte, error)) (own, reply []byte, err error) {
	x, open, err := j.confirm(id, confirmation)
	if err != nil {
		return nil, nil, err
	}
	question, err := x.session.Open(sealed)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrSealed, err)
	}
	out, err := answer(&Admission{j: j, of: x.of, over: !open}, question)
	if err != nil {
		return nil, nil, err
	}
	return x.session.Confirmation(), x.session.Seal(out), nil
}

// confirm takes an exchange, and reports whether its code is still open; a laptop that has
// the code may know.
func (j *Joining) confirm(id, confirmation []byte) (x *exchange, open bool, err error) {
	j.mu.Lock()
	defer func() {
		j.mu.Unlock()
		j.announce() // which the last wrong try ends
	}()
	if len(id) != joinexchange.IDBytes {
		return nil, false, ErrOver
	}
	x = j.exchanges[number(id)]
	delete(j.exchanges, number(id))
	if x == nil || !j.now().Before(x.ends) {
		return nil, false, ErrOver
	}
	open = x.of != nil && x.of == j.open()
	if x.session.Confirmed(confirmation) && x.of != nil {
		return x, open, nil
	}
	if open {
		x.of.wrong++
		j.log.Warn("a laptop tried to join with a wrong code", "network", x.network, "tries_left", MaxWrong-x.of.wrong)
		if x.of.wrong >= MaxWrong {
			j.end(Tried)
			j.log.Warn("the code to join by is closed after wrong tries", "tries", MaxWrong)
		}
	}
	return nil, false, ErrCode
}

// Admission is a laptop that has shown the code.
type Admission struct {
	j    *Joining
	of   *code
	over bool
}

// Question is what a laptop asks for.
type Question struct {
	Name     string // of the node that it wants to be
	Replace  bool   // it takes the place of the node that has the name
	Version  string // of its program
	Protocol int32  // that its agent speaks
}

// Admit returns a one-time token for a laptop's enrolment. refusal is for the person at
// the laptop; err is of the orchestrator.
func (a *Admission) Admit(ctx context.Context, q Question) (token, refusal string, err error) {
	if a.over {
		return "", "the code is right but has ended: ask for a new one", nil
	}
	if refusal := q.refuse(a.j.cfg.Version); refusal != "" {
		return "", refusal, nil
	}
	if refusal, err := a.j.take(ctx, q); refusal != "" || err != nil {
		return "", refusal, err
	}
	t, _, err := a.j.cfg.Authority.CreateToken(ctx, q.Name, tokenLife, a.of.by+" (by a code)")
	a.j.mu.Lock()
	defer a.j.mu.Unlock()
	if err != nil {
		delete(a.j.names, q.Name)
		return "", "", fmt.Errorf("token for %s: %w", q.Name, err)
	}
	a.of.joined = append(a.of.joined, Joined{Name: q.Name, At: a.j.now()})
	a.j.log.Info("a laptop joined by the code", "node", q.Name, "version", q.Version)
	return t.String(), "", nil
}
