package session

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"connectrpc.com/connect"

	"linktrial/agents/identity"
	"linktrial/agents/silence"
	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/executor/journal"
	"linktrial/internal/agentprotocol"
	"linktrial/internal/backoff"
	"linktrial/internal/wallclock"
	"linktrial/internal/watchdog"
)

// Config of a [Session].
type Config struct {
	URL     string // of the orchestrator: http (lab, loopback) or https
	Name    string // of the node
	Version string // of linktrial
	// Identity is what the node shows; nil where the URL is http.
	Identity    *identity.Identity
	Incarnation string // of this start of the agent
	Logger      *slog.Logger
	Clock       *wallclock.Clock // the node's; nil: the kernel's
	// Disk is the free space reported with each poll, in bytes; nil: not reported.
	Disk func() int64
	// AddStatus adds to each poll what else the node reports of itself; nil: nothing.
	AddStatus func(*linktrialv1.PollRequest)
	// Keys is called, before any assignment, with the keys that the orchestrator
	// signs with; it can be nil.
	Keys func([]*linktrialv1.SigningKey)
	// Registered is called with the answer to each registration, and the challenge that
	// its assignment must have; it can be nil.
	Registered func(r *linktrialv1.RegisterResponse, challenge []byte)
	// Loop gets to know that the loop of [Session.Run] makes progress; nil: nobody asks.
	Loop *watchdog.Loop
	// Status is called when contact with the orchestrator begins or ends, with a text
	// for people; it can be nil.
	Status func(text string)
	// Refused is called when the orchestrator refuses a run's journal for good; it can
	// be nil.
	Refused func(run string, err error)
}

// Answer is what an orchestrator wants of the node, as it answers a poll. Nothing of it
// is verified yet.
type Answer struct {
	Assignments []*linktrialv1.SignedAssignment
	Challenge   []byte // of the poll; every assignment must have it
	// Brief: assignments are without sheets. The node knows that of a run that it takes
	// part in.
	Brief bool
}

// newChallenge makes a number that no earlier call had.
func newChallenge() []byte {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(err) // crypto/rand.Read never returns an error
	}
	return b
}

// Session is the connection to one orchestrator. Its methods may be called
// from several goroutines.
type Session struct {
	cfg    Config
	client linktrialv1connect.AgentServiceClient
	// compressing is client for requests that have more than a few hundred bytes. It
	// takes processor time, and is for in-band control.
	compressing linktrialv1connect.AgentServiceClient
	http        *http.Transport
	dial        *dialer
	resumption  resumption
	// briefed: what is desired of the node came last without sheets. The next poll that
	// has time asks for all of it. Of the goroutine of Run.
	briefed bool
	gate    *silence.Gate
	// renewing is held while the certificate changes, and shared by calls that are signed
	// with its key.
	renewing sync.RWMutex

	mu      sync.Mutex
	pending context.CancelFunc // ends the poll that waits; nil: none does
	again   bool               // the node is to be registered again
}

// Times of the session, all in the node's time.
const (
	pollWait     = 20 * time.Second
	callLimit    = 15 * time.Second // of a call that does not wait, and past pollWait
	deliverLimit = 2 * callLimit    // of a delivery outside of windows
	backoffMin   = 200 * time.Millisecond
	backoffMax   = 5 * time.Second
	syncEvery    = time.Second // out-of-band: how old an unsynced record may become
	batchBytes   = 1<<20 - 32<<10
	// compressedFrom is from how many bytes on compressing makes a request shorter.
	compressedFrom = 200
	refusedWait    = 30 * time.Second // before a delivery that was refused is tried again
	// refusedPause is between an answer that is refused and the next poll: short enough
	// for the node to stay connected.
	refusedPause = time.Second
)

// New returns a session. It connects at the first call.
func New(cfg Config) (*Session, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("orchestrator %q, expected a URL such as http://127.0.0.1:7700", cfg.URL)
	}
	if u.Scheme == "https" && cfg.Identity == nil {
		return nil, fmt.Errorf("orchestrator %s: %w, and it works with enrolled nodes only", cfg.URL, identity.ErrNone)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Session{cfg: cfg, dial: newDialer()}
	s.gate = silence.NewGate(s.reset)
	protocols := new(http.Protocols)
	protocols.SetHTTP2(u.Scheme == "https")
	protocols.SetUnencryptedHTTP2(u.Scheme == "http")
	// One connection: calls that begin together would otherwise make one each.
	s.http = &http.Transport{DialContext: s.dial.DialContext, DialTLSContext: s.dialTLS, Protocols: protocols, Proxy: nil, MaxConnsPerHost: 1}
	h := &http.Client{Transport: s.http}
	s.client = linktrialv1connect.NewAgentServiceClient(h, cfg.URL, connect.WithGRPC())
	s.compressing = linktrialv1connect.NewAgentServiceClient(h, cfg.URL, connect.WithGRPC(), connect.WithSendGzip(), connect.WithCompressMinBytes(compressedFrom))
	return s, nil
}

// Close ends the session's connections. Calls that run end with an error.
func (s *Session) Close() {
	s.gate.Suspend()
	s.gate.Resume()
}

// Gate is what all calls of the session pass: it suspends and resumes them.
func (s *Session) Gate() *silence.Gate { return s.gate }

// reset ends the session's connections at once. late is as in [silence.NewGate].
func (s *Session) reset() (late time.Duration) {
	late = s.dial.reset()
	s.http.CloseIdleConnections()
	return late
}

// do makes one call when that is allowed, for at most limit. A call that
// fails other than by an answer takes its connection along: what a dead link
// did to it cannot be known here.
func (s *Session) do(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, leave, err := s.gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = f(ctx)
	switch connect.CodeOf(err) {
	case connect.CodeDeadlineExceeded, connect.CodeUnavailable:
		if err != nil {
			s.dial.reset()
		}
	}
	return s.explain(ctx, err)
}

// loopGrace is how long the session's loop may take beyond its calls: to save an
// assignment on a slow disk, above all.
const loopGrace = time.Minute

func (s *Session) status(text string) {
	if s.cfg.Status != nil {
		s.cfg.Status(text)
	}
}

func newBackoff() *backoff.Backoff {
	return &backoff.Backoff{Min: backoffMin, Max: backoffMax, Jitter: true}
}

// Run registers the node and polls until ctx ends. handle is called with all
// that the orchestrator wants of the node, at each answer; where it refuses a part of
// that, the next poll waits a moment.
func (s *Session) Run(ctx context.Context, register func() *linktrialv1.RegisterRequest, handle func(Answer) (refused bool)) {
	retry := newBackoff()
	registered, logged := false, "" // what was last logged of a failure
	revision := int64(0)
	s.status("connecting to " + s.cfg.URL)
	for ctx.Err() == nil {
		var err error
		s.cfg.Loop.Waits() // a call may have to wait until a trial has ended
		registered = registered && !s.takeAgain()
		if !registered {
			if err = s.register(ctx, register()); err == nil {
				registered, revision = true, 0
				s.status("connected to " + s.cfg.URL)
			}
		} else {
			refused := false
			revision, refused, err = s.poll(ctx, revision, handle)
			if refused {
				backoff.Sleep(ctx, refusedPause)
			}
			if connect.CodeOf(err) == connect.CodeNotFound && err != nil {
				registered, err = false, nil
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && s.gate.Suspended() {
			continue // the call was cut short on purpose
		}
		if err != nil {
			logged = s.logFailure(err, logged)
			s.cfg.Loop.Within(loopGrace)
			retry.Wait(ctx)
			continue
		}
		if logged != "" {
			s.cfg.Logger.Info("orchestrator is reached again", "url", s.cfg.URL)
			s.status("connected to " + s.cfg.URL)
		}
		logged = ""
		retry.Reset()
	}
}

func (s *Session) register(ctx context.Context, r *linktrialv1.RegisterRequest) error {
	r.Name, r.Incarnation, r.Protocol, r.Challenge = s.cfg.Name, s.cfg.Incarnation, agentprotocol.Number, newChallenge()
	return s.do(ctx, callLimit, func(ctx context.Context) error {
		s.cfg.Loop.Within(callLimit + loopGrace)
		res, err := s.client.Register(ctx, connect.NewRequest(r))
		if err == nil && !agentprotocol.Spoken(res.Msg.Protocol) {
			return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("the orchestrator's version %s speaks protocol %d and this agent's version %s %s: install the same version on both",
				res.Msg.OrchestratorVersion, max(1, res.Msg.Protocol), s.cfg.Version, agentprotocol.Words()))
		}
		if err == nil && s.cfg.Keys != nil {
			s.cfg.Keys(res.Msg.SigningKeys)
		}
		if err == nil && s.cfg.Registered != nil {
			s.cfg.Registered(res.Msg, r.Challenge)
		}
		return err
	})
}

func (s *Session) poll(ctx context.Context, revision int64, handle func(Answer) bool) (newRevision int64, refused bool, err error) {
	r := &linktrialv1.PollRequest{Name: s.cfg.Name, Incarnation: s.cfg.Incarnation, Revision: revision, WaitMs: int32(pollWait.Milliseconds()), Protocol: agentprotocol.Number, Challenge: newChallenge()}
	if s.cfg.Disk != nil {
		r.DiskFreeBytes = s.cfg.Disk()
	}
	var answer *linktrialv1.PollResponse
	window := int64(0)
	pctx, done := s.beginPoll(ctx, r)
	defer done()
	err = s.do(pctx, pollWait+callLimit, func(ctx context.Context) error {
		s.cfg.Loop.Within(pollWait + callLimit + loopGrace)
		// Only here is it known whether the call waited for a window.
		if window = s.gate.OpenWindow(); window != 0 {
			r.WaitMs, r.Brief = 0, true
		} else if s.briefed {
			r.Revision = 0
		}
		resp, err := s.client.Poll(ctx, connect.NewRequest(r))
		if err == nil {
			answer = resp.Msg
		}
		return err
	})
	if err != nil && ctx.Err() == nil && pctx.Err() != nil {
		return revision, false, nil // ended by PollNow
	}
	if err != nil {
		return revision, false, err
	}
	s.cfg.Loop.Within(loopGrace)
	if !r.Brief || answer.Revision != revision || len(answer.Assignments) > 0 {
		if s.cfg.Keys != nil {
			s.cfg.Keys(answer.SigningKeys)
		}
		s.briefed = r.Brief
		refused = handle(Answer{Assignments: answer.Assignments, Challenge: r.Challenge, Brief: r.Brief})
	}
	s.gate.Answered(ctx, window)
	return answer.Revision, refused, nil
}

// RegisterAgain has the node registered anew: what its registration says has changed.
func (s *Session) RegisterAgain() {
	s.mu.Lock()
	s.again = true
	s.mu.Unlock()
	s.PollNow()
}

func (s *Session) takeAgain() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := s.again
	s.again = false
	return again
}

// PollNow has the node's state reported at once: it ends the poll that waits, if any.
func (s *Session) PollNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		s.pending()
	}
}

// beginPoll completes a poll's request and returns the context that [Session.PollNow]
// ends; done must be called when the poll has ended.
func (s *Session) beginPoll(ctx context.Context, r *linktrialv1.PollRequest) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.pending = cancel
	s.mu.Unlock()
	// After pending is set: a fault that is added from here on ends this poll.
	if s.cfg.AddStatus != nil {
		s.cfg.AddStatus(r)
	}
	return ctx, func() {
		s.mu.Lock()
		s.pending = nil
		s.mu.Unlock()
		cancel()
	}
}

// Exchanges of a clock measurement, and how long all of them may take.
const (
	clockExchanges = 8
	clockLimit     = 10 * time.Second
)

// Offset measures the orchestrator's clock against the node's: of eight
// exchanges the one with the shortest round trip counts (RFC 5905, section 8:
// θ = ((T2−T1)+(T3−T4))/2, δ = (T4−T1)−(T3−T2); section 10 takes the minimum
// delay of eight). They are timed by the clock that never steps, against which the
// orchestrator's is measured. It takes at most ten seconds; without a control link the
// record has the reason.
func (s *Session) Offset(ctx context.Context, when string) journal.ClockOffset {
	ctx, cancel := context.WithTimeout(ctx, clockLimit)
	defer cancel()
	var best time.Duration
	o := journal.ClockOffset{When: when}
	var last error
	n := 0
	for range clockExchanges {
		err := s.do(ctx, clockLimit/2, func(ctx context.Context) error {
			t1 := wallclock.Steady()
			resp, err := s.client.Clock(ctx, connect.NewRequest(&linktrialv1.ClockRequest{}))
			t4 := wallclock.Steady()
			if err != nil {
				return err
			}
			offset, delay := clockOffset(int64(t1), resp.Msg.ReceivedUnixNs, resp.Msg.SentUnixNs, int64(t4))
			if n == 0 || delay < best {
				best, o.Offset, o.Error = delay, offset, delay/2
			}
			n++
			return nil
		})
		if err != nil {
			last = err
			break
		}
	}
	if n == 0 {
		o.Unknown = fmt.Sprintf("no control link: %v", last)
		return o
	}
	wall, steady := s.cfg.Clock.Read()
	o.Epoch = time.Duration(wall.UnixNano()) - steady
	o.Offset -= o.Epoch
	return o
}

func clockOffset(t1, t2, t3, t4 int64) (offset, delay time.Duration) {
	return time.Duration(((t2 - t1) + (t3 - t4)) / 2), max(0, time.Duration((t4-t1)-(t3-t2)))
}
