package joining

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/agentprotocol"
	"linktrial/internal/identity"
	"linktrial/internal/joincode"
	"linktrial/internal/joinexchange"
	"linktrial/orchestrator/security/authority"
)

// fake is an authority without a database.
type fake struct {
	mu     sync.Mutex
	plain  bool
	broken error
	nodes  []authority.NodeIdentity
	tokens []string // names and by whom
}

func (f *fake) CheckMode() error {
	if f.plain {
		return fmt.Errorf("%w: it was started with --open", authority.ErrPlain)
	}
	return nil
}

var shown = sha256.Sum256([]byte("the orchestrator's certificate"))

func (f *fake) ShownHash() [32]byte { return shown }

func (f *fake) CreateToken(_ context.Context, node string, valid time.Duration, by string) (identity.Token, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens = append(f.tokens, node+" "+by)
	return identity.NewToken(node, [32]byte{}), time.Now().Add(valid), f.broken
}

func (f *fake) Identities(context.Context) ([]authority.NodeIdentity, error) { return f.nodes, nil }

// laptop is one that joins.
type laptop struct {
	j    *Joining
	from string
	seen [32]byte
}

func at(j *Joining) laptop { return laptop{j: j, from: "192.0.2.1", seen: shown} }

// messages are what a laptop sends to finish an exchange.
type messages struct {
	id, confirmation, sealed []byte
	session                  *joinexchange.Session
}

func (l laptop) begin(c joincode.Code) (messages, error) {
	x, err := joinexchange.NewJoiner(c)
	if err != nil {
		return messages{}, err
	}
	id, point, err := l.j.Begin(l.from, x.Point())
	if err != nil {
		return messages{}, err
	}
	s, err := x.Finish(joinexchange.Binding{ID: [16]byte(id), Certificate: l.seen}, point)
	if err != nil {
		return messages{}, err
	}
	return messages{id, s.Confirmation(), s.Seal([]byte("question")), s}, nil
}

// finish returns the token, or the refusal, for a question.
func (l laptop) finish(m messages, q Question) (token, refusal string, err error) {
	_, _, err = l.j.Finish(m.id, m.confirmation, m.sealed, func(a *Admission, question []byte) ([]byte, error) {
		if string(question) != "question" {
			return nil, errors.New("another question")
		}
		var err error
		token, refusal, err = a.Admit(context.Background(), q)
		return nil, err
	})
	return token, refusal, err
}

func named(name string) Question {
	return Question{Name: name, Version: "1.4.0", Protocol: agentprotocol.Number}
}

func (l laptop) join(c joincode.Code, q Question) (token, refusal string, err error) {
	m, err := l.begin(c)
	if err != nil {
		return "", "", err
	}
	return l.finish(m, q)
}

func opened(t *testing.T, cfg Config) (*Joining, joincode.Code) {
	j := New(cfg)
	c, _, err := j.Open(0, "olga")
	require.NoError(t, err)
	return j, c
}

// other is a code that differs from one.
func other(t *testing.T, c joincode.Code) joincode.Code {
	for {
		if o := joincode.New(); o != c {
			return o
		}
		t.Log("drew the same code")
	}
}

func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		j, c := opened(t, Config{Authority: f, Version: "1.4.0"})
		defer j.Stop()
		require.Equal(t, Status{State: Open, Expires: time.Now().Add(UsualLife), TriesLeft: MaxWrong}, j.Status())

		m, err := at(j).begin(c)
		require.NoError(t, err)
		own, sealed, err := j.Finish(m.id, m.confirmation, m.sealed, func(a *Admission, question []byte) ([]byte, error) {
			require.Equal(t, "question", string(question))
			token, refusal, err := a.Admit(t.Context(), named("client"))
			require.Empty(t, refusal)
			return []byte(token), err
		})
		require.NoError(t, err)
		require.True(t, m.session.Confirmed(own))
		text, err := m.session.Open(sealed)
		require.NoError(t, err)
		token, err := identity.ParseToken(string(text))
		require.NoError(t, err)
		require.Equal(t, "client", token.Node)
		require.Equal(t, []string{"client olga (by a code)"}, f.tokens)
		require.Equal(t, []Joined{{"client", time.Now()}}, j.Status().Joined)

		// The code is of use for further laptops, and none of its messages again.
		_, _, err = at(j).finish(m, named("server"))
		require.ErrorIs(t, err, ErrOver)
		_, refusal, err := at(j).join(c, named("server"))
		require.NoError(t, err)
		require.Empty(t, refusal)
		require.Len(t, j.Status().Joined, 2)
		require.Equal(t, MaxWrong, j.Status().TriesLeft, "what is over is no wrong try")
	})
}

func TestWrongCodeFiveTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		j, c := opened(t, Config{Authority: f})
		defer j.Stop()
		for n := range MaxWrong {
			require.Equal(t, MaxWrong-n, j.Status().TriesLeft)
			_, _, err := at(j).join(other(t, c), named("client"))
			require.Equal(t, ErrCode, err)
		}
		require.Equal(t, Status{State: Tried, Expires: j.Status().Expires}, j.Status())
		_, _, err := at(j).join(c, named("client"))
		require.Equal(t, ErrCode, err, "the right one, after it was closed, as any other")
		require.Empty(t, f.tokens)

		again, _, err := j.Open(0, "olga")
		require.NoError(t, err)
		require.Equal(t, MaxWrong, j.Status().TriesLeft)
		_, refusal, err := at(j).join(again, named("client"))
		require.NoError(t, err)
		require.Empty(t, refusal)
	})
}

// Many guesses that were begun while the code was open do not make more than five.
func TestGuessesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c := opened(t, Config{Authority: &fake{}})
		defer j.Stop()
		var begun []messages
		for n := range MaxWrong + 1 {
			l := at(j)
			l.from = fmt.Sprintf("192.0.2.%d", n)
			guess := other(t, c)
			if n == MaxWrong {
				guess = c
			}
			m, err := l.begin(guess)
			require.NoError(t, err)
			begun = append(begun, m)
		}
		for _, m := range begun[:MaxWrong] {
			_, _, err := at(j).finish(m, named("client"))
			require.Equal(t, ErrCode, err)
		}
		token, refusal, err := at(j).finish(begun[MaxWrong], named("client"))
		require.NoError(t, err)
		require.Empty(t, token)
		require.Contains(t, refusal, "has ended: ask for a new one")
	})
}

// Who does not know the code cannot tell whether there is one.
func TestWrongOldAndNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := New(Config{Authority: &fake{}})
		answers := func() (int, int, error) {
			x, err := joinexchange.NewJoiner(joincode.New())
			require.NoError(t, err)
			id, point, err := j.Begin("192.0.2.1", x.Point())
			require.NoError(t, err)
			_, _, err = at(j).join(joincode.New(), named("client"))
			return len(id), len(point), err
		}
		id, point, none := answers()
		require.Equal(t, ErrCode, none)
		_, _, err := j.Open(time.Minute, "olga")
		require.NoError(t, err)
		id2, point2, wrong := answers()
		time.Sleep(time.Minute)
		synctest.Wait()
		id3, point3, old := answers()
		require.Equal(t, []any{none, id, point, none, id, point}, []any{wrong, id2, point2, old, id3, point3})
	})
}

func TestExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		j, c := opened(t, Config{Authority: &fake{}, Announce: func() (func(), error) { told++; return func() { told-- }, nil }})
		require.Equal(t, 1, told)
		time.Sleep(UsualLife - time.Second)
		m, err := at(j).begin(c)
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Zero(t, told, "the announcement ends with the code")
		require.Equal(t, Expired, j.Status().State)
		_, refusal, err := at(j).finish(m, named("client"))
		require.NoError(t, err)
		require.Contains(t, refusal, "has ended", "who began in time and knows the code is told")
		_, _, err = at(j).join(c, named("client"))
		require.Equal(t, ErrCode, err)
		require.False(t, j.Close("olga"))

		_, _, err = j.Open(time.Hour, "olga")
		require.NoError(t, err)
		require.Equal(t, 1, told)
		second, _, err := j.Open(0, "olga") // closes the first
		require.NoError(t, err)
		require.Equal(t, 1, told)
		time.Sleep(UsualLife / 2)
		_, _, err = at(j).join(second, named("client"))
		require.NoError(t, err, "the end of the first one's time is nothing to the second")
		require.True(t, j.Close("olga"))
		require.Zero(t, told)
		require.Equal(t, Closed, j.Status().State)
		for _, valid := range []time.Duration{-1, time.Second, 2 * time.Hour} {
			_, _, err := j.Open(valid, "olga")
			require.ErrorIs(t, err, ErrLife)
			require.ErrorContains(t, err, "expected 1m0s to 1h0m0s")
		}
	})
}

// Somebody in between ends TLS with a certificate of their own and passes the messages on.
func TestInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		j, c := opened(t, Config{Authority: f})
		defer j.Stop()
		l := at(j)
		l.seen = sha256.Sum256([]byte("another certificate"))
		_, _, err := l.join(c, named("client"))
		require.Equal(t, ErrCode, err)
		require.Empty(t, f.tokens)
		require.Equal(t, MaxWrong-1, j.Status().TriesLeft)
	})
}

func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{nodes: []authority.NodeIdentity{{Name: "relay", State: authority.StateEnrolled, Enrolled: time.Now()}, {Name: "old", State: authority.StateExpired}, {Name: "new", State: authority.StateInvited}}}
		j, c := opened(t, Config{Authority: f, Version: "1.4.0"})
		defer j.Stop()
		for _, x := range []struct {
			q    Question
			says string // empty: it joins
		}{
			{named("relay"), "enrolled as relay already, since 2000-01-01 00:00:00 UTC: choose another name with --name, or use --replace"},
			{Question{Name: "relay", Replace: true, Protocol: agentprotocol.Number}, ""},
			{named("old"), ""},
			{named("new"), ""},
			{named("new"), "a laptop has just joined as new: choose another name with --name"},
			{Question{Name: "new", Replace: true, Protocol: agentprotocol.Number}, ""},
			{named("two words"), `name "two words" of a node, expected letters`},
			{named(""), "expected letters"},
			{Question{Name: "b", Version: "0.9.0", Protocol: agentprotocol.Number + 1}, "this laptop has version 0.9.0, which speaks protocol 3, and the orchestrator has version 1.4.0, which speaks protocol 2: install the same version on both"},
			{Question{Name: "b", Version: "0.1.0"}, "version 0.1.0, which speaks protocol 1"},
		} {
			token, refusal, err := at(j).join(c, x.q)
			require.NoError(t, err)
			require.Equal(t, x.says == "", token != "", x.q)
			require.Contains(t, refusal, x.says)
		}
		// What the name was kept for is over.
		time.Sleep(UsualLife)
		c, _, err := j.Open(0, "olga")
		require.NoError(t, err)
		_, refusal, err := at(j).join(c, named("new"))
		require.NoError(t, err)
		require.Empty(t, refusal)

		// Where the store fails, so does the laptop, which may try again.
		f.broken = errors.New("no space")
		_, _, err = at(j).join(c, named("b"))
		require.ErrorIs(t, err, f.broken)
		f.broken = nil
		_, refusal, err = at(j).join(c, named("b"))
		require.NoError(t, err)
		require.Empty(t, refusal)
	})
}

func TestTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c := opened(t, Config{Authority: &fake{}})
		defer j.Stop()
		var mu sync.Mutex
		var group sync.WaitGroup
		got := map[bool]int{} // by whether it was refused
		for n := range 8 {
			group.Go(func() {
				l := at(j)
				l.from = fmt.Sprintf("192.0.2.%d", n)
				_, refusal, err := l.join(c, named("client"))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				got[refusal != ""]++
			})
		}
		group.Wait()
		require.Equal(t, map[bool]int{false: 1, true: 7}, got)
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c := opened(t, Config{Authority: &fake{}})
		defer j.Stop()
		begun := 0
		for n := range 2 * maxExchanges {
			l := at(j)
			l.from = fmt.Sprintf("192.0.2.%d", n/(2*maxOfNetwork))
			if _, err := l.begin(c); err == nil {
				begun++
			} else {
				require.ErrorIs(t, err, ErrBusy)
				require.ErrorContains(t, err, "try again in 30 s")
			}
		}
		require.Equal(t, maxExchanges, begun)
		l := at(j)
		l.from = "198.51.100.1"
		_, err := l.begin(c)
		require.ErrorIs(t, err, ErrBusy)
		time.Sleep(exchangeLife)
		m, err := l.begin(c)
		require.NoError(t, err)
		time.Sleep(exchangeLife)
		_, _, err = l.finish(m, named("client"))
		require.ErrorIs(t, err, ErrOver)

		for n := range maxJoined {
			_, refusal, err := l.join(c, named(fmt.Sprint("n", n)))
			require.NoError(t, err)
			require.Empty(t, refusal)
		}
		_, refusal, err := l.join(c, named("another"))
		require.NoError(t, err)
		require.Contains(t, refusal, "100 laptops joined by this code")
	})
}

func TestPlain(t *testing.T) {
	j := New(Config{Authority: &fake{plain: true}})
	_, _, err := j.Open(0, "olga")
	require.ErrorIs(t, err, authority.ErrPlain)
	require.ErrorContains(t, err, "joining by a code takes TLS: ")
	_, err = at(j).begin(joincode.New())
	require.ErrorIs(t, err, authority.ErrPlain)
	require.Equal(t, Status{}, j.Status())
}

func TestBadMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, c := opened(t, Config{Authority: &fake{}, Announce: func() (func(), error) { return nil, errors.New("no interface") }})
		defer j.Stop()
		_, _, err := j.Begin("192.0.2.1", []byte("point"))
		require.ErrorIs(t, err, ErrPoint)
		m, err := at(j).begin(c)
		require.NoError(t, err)
		m.sealed[0] ^= 1
		_, _, err = at(j).finish(m, named("client"))
		require.ErrorIs(t, err, ErrSealed)
		for _, id := range [][]byte{nil, m.id[:15], make([]byte, 16), make([]byte, 17)} {
			_, _, err := j.Finish(id, m.confirmation, m.sealed, nil)
			require.ErrorIs(t, err, ErrOver)
		}
		require.Equal(t, MaxWrong, j.Status().TriesLeft)
	})
}
