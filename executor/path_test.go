package executor

import (
	"context"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/internal/radio"
	"linktrial/protocols/contract"
)

// scriptedPaths is a path that is as say returns.
type scriptedPaths struct {
	mu   sync.Mutex
	say  func(methods PathMethods) PathExchange
	asks []PathMethods

	port  PortExchange // what is counted at a listener's port
	ports int          // how often that was asked
}

func (p *scriptedPaths) Exchange(ctx context.Context, _ PathEnds, methods PathMethods, q PathQuestion) PathExchange {
	p.mu.Lock()
	p.asks = append(p.asks, methods)
	x := p.say(methods)
	p.mu.Unlock()
	x.Passed &= methods
	if x.Node != nil {
		s := *x.Node
		s.Since, x.Node = q.Since, &s
	}
	if x.Passed != methods { // it goes on until its time is over
		<-ctx.Done()
	}
	return x
}

func (p *scriptedPaths) Port(_ context.Context, _ PathEnds, _ PathMethods, _ PortQuestion, enough func(*PortExchange) bool) PortExchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ports++
	enough(&p.port)
	return p.port
}

func (p *scriptedPaths) set(x PathExchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say = func(PathMethods) PathExchange { return x }
}

func inOrderAt(l ListenerReport) *NodeState { return &NodeState{Listeners: []ListenerReport{l}} }

var (
	listenerUp = ListenerReport{Treatment: "a", Port: 5001, Up: true, UpFor: time.Hour}
	pathFine   = PathExchange{Passed: pathMethods, Node: inOrderAt(listenerUp)}
)

// led is a run of one trial of protocol a, whose client fails as code says while the path
// is as at says, and whose path was fine before.
func led(t *testing.T, network string, code contract.Code, before, at PathExchange, change func(*Config)) (told []string, ended journal.AttemptEnded, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		paths := &scriptedPaths{}
		paths.set(before)
		failed := false
		r := &scripted{fail: func(*contract.Parameters) contract.Code {
			if failed {
				return ""
			}
			failed = true
			paths.set(at)
			go func() { // it is mended while the run waits
				time.Sleep(time.Minute)
				paths.set(pathFine)
			}()
			return code
		}}
		cfg := config(testSheet(t, 1, 1), j, r, nil)
		cfg.Paths, cfg.Network = paths, func(string) string { return network }
		if change != nil {
			change(&cfg)
		}
		began := time.Now()
		require.NoError(t, Lead(t.Context(), cfg))
		took = time.Since(began)
		for _, x := range read(t, j) {
			if x.Type == journal.TypeAttemptEnded {
				ended = body[journal.AttemptEnded](t, x)
				break
			}
		}
		told = story(t, read(t, j))
		time.Sleep(2 * time.Minute) // for the one that mends
	})
	return told, ended, took
}

// What an exchange shows decides whether a failure is the protocol's.
func TestPathVerdicts(t *testing.T) {
	with := func(change func(*PathExchange)) PathExchange {
		x := pathFine
		change(&x)
		return x
	}
	listener := func(change func(*ListenerReport)) PathExchange {
		l := listenerUp
		change(&l)
		return PathExchange{Passed: pathMethods, Node: inOrderAt(l)}
	}
	old := PathExchange{Passed: pathMethods}
	hole := func(x *PathExchange) {
		x.Passed &^= PathUDPFull | PathTCPFull
		x.Small, x.SmallBack, x.Full = 30, 30, 30
	}
	for name, c := range map[string]struct {
		network string
		code    contract.Code
		before  PathExchange
		at      PathExchange
		verdict journal.Verdict
		reason  string
		message string // part of it
	}{
		"all in order, timeout":                      {"udp", contract.CodeConnectTimeout, pathFine, pathFine, journal.TimedOut, "connect-timeout", "as scripted"},
		"all in order, transfer":                     {"tcp", contract.CodeTransferTimeout, pathFine, pathFine, journal.TimedOut, "transfer-timeout", "as scripted"},
		"all in order, reset":                        {"tcp", contract.CodeReset, pathFine, pathFine, journal.Failed, "reset", "as scripted"},
		"all in order, unreachable":                  {"tcp", contract.CodeUnreachable, pathFine, pathFine, journal.Failed, "unreachable", "as scripted"},
		"all in order, internal":                     {"tcp", contract.CodeInternal, pathFine, pathFine, journal.Failed, "internal", "as scripted"},
		"corrupted on a path that is cut":            {"tcp", contract.CodeCorrupted, pathFine, PathExchange{}, journal.Failed, "corrupted", "as scripted"},
		"nothing passes":                             {"udp", contract.CodeConnectTimeout, pathFine, PathExchange{}, journal.Invalid, "path-down", "no packet passes between client (10.77.0.1) and server (10.77.0.3) since 00:00:00 UTC, when one passed last"},
		"internal, nothing passes":                   {"udp", contract.CodeInternal, pathFine, PathExchange{}, journal.Invalid, "path-down", "no packet passes"},
		"it cannot send":                             {"tcp", contract.CodeUnreachable, pathFine, PathExchange{Fault: "cannot assign requested address"}, journal.Invalid, "radio-down", "the client cannot send over the radio: cannot assign requested address"},
		"UDP is blocked":                             {"udp", contract.CodeConnectTimeout, pathFine, with(func(x *PathExchange) { x.Passed = PathTCP | PathTCPFull | PathICMP }), journal.Invalid, "path-blocked", "UDP, UDP in full packets does not pass between client and server, while TCP, TCP in full packets, ICMP does"},
		"UDP is blocked, TCP fails":                  {"tcp", contract.CodeConnectTimeout, pathFine, with(func(x *PathExchange) { x.Passed = PathTCP | PathTCPFull | PathICMP }), journal.TimedOut, "connect-timeout", "as scripted"},
		"UDP was always blocked, for an older agent": {"udp", contract.CodeConnectTimeout, with(func(x *PathExchange) { x.Passed, x.Node = PathTCP, nil }), with(func(x *PathExchange) { x.Passed, x.Node = PathTCP, nil }), journal.Invalid, "undetermined", "no agent there says"},
		"UDP is refused by a firewall":               {"udp", contract.CodeConnectRefused, pathFine, with(func(x *PathExchange) { x.Refused = PathUDP | PathUDPFull }), journal.Invalid, "path-blocked", "UDP, UDP in full packets is refused at the server, whose agent answers in another way"},
		"small packets pass":                         {"udp", contract.CodeTransferTimeout, pathFine, with(hole), journal.Invalid, "path-blocked", "full packets do not pass between client and server (60 were sent), while all of 60 small ones do"},
		"small packets pass, some":                   {"udp", contract.CodeTransferTimeout, pathFine, with(func(x *PathExchange) { hole(x); x.SmallBack-- }), journal.TimedOut, "transfer-timeout", "as scripted"},
		"an older agent":                             {"udp", contract.CodeConnectTimeout, old, old, journal.Invalid, "undetermined", "no agent there says"},
		"an agent that has gone":                     {"udp", contract.CodeConnectRefused, pathFine, old, journal.Invalid, "server-down", "the agent of the server does not answer"},
		"its interface": {"udp", contract.CodeConnectTimeout, pathFine, with(func(x *PathExchange) {
			x.Node = &NodeState{Fault: "the radio's interface radio0 of the server was not in order"}
		}), journal.Invalid, "server-down", "radio0 of the server"},
		"its port is taken":       {"udp", contract.CodeConnectTimeout, pathFine, listener(func(l *ListenerReport) { l.Up, l.Message = false, "port 5001 is held by python3 (process 7)" }), journal.Invalid, "server-down", "the listener of a at the server is not up: port 5001 is held by python3 (process 7)"},
		"its listener was killed": {"udp", contract.CodeReset, pathFine, listener(func(l *ListenerReport) { l.Outage = "was ended from outside" }), journal.Invalid, "server-down", "the listener of a at the server was ended from outside"},
		"it is at another port":   {"udp", contract.CodeConnectTimeout, pathFine, listener(func(l *ListenerReport) { l.Port = 5900 }), journal.Invalid, "server-down", "the listener of a at the server is at port 5900, and the flow connected to port 5001, where it was before"},
		"its listener crashes":    {"udp", contract.CodeConnectTimeout, pathFine, listener(func(l *ListenerReport) { l.Up, l.Own, l.Code, l.Message = false, true, contract.CodeInternal, "crash" }), journal.Failed, "listener-failed", "the listener of a at the server is not up: crash; the flow ended with connect-timeout: as scripted"},
		"its driver refuses": {"udp", contract.CodeConnectTimeout, pathFine, listener(func(l *ListenerReport) {
			l.Up, l.Own, l.Code, l.Message = false, true, contract.CodeBadParameters, "local.address"
		}), journal.Invalid, "bad-parameters", "the listener of a at the server refuses its parameters: local.address"},
		"it is up, and refuses":      {"tcp", contract.CodeConnectRefused, pathFine, pathFine, journal.Invalid, "undetermined", "the listener of a at the server has been up at port 5001 since before the attempt"},
		"it was not up, and refused": {"tcp", contract.CodeConnectRefused, pathFine, listener(func(l *ListenerReport) { l.UpFor = 0 }), journal.Failed, "connect-refused", "as scripted"},
	} {
		t.Run(name, func(t *testing.T) {
			story, ended, _ := led(t, c.network, c.code, c.before, c.at, nil)
			require.Equal(t, c.reason, ended.Reason, ended.Message)
			require.Equal(t, c.verdict, ended.Verdict)
			require.Contains(t, ended.Message, c.message)
			want := []string{"start 0/1", "end 0/1 " + string(c.verdict) + " " + c.reason}
			if journal.ApparatusFault(c.reason) || c.reason == journal.ReasonUndetermined {
				want = append(want, "start 0/2", "end 0/2 succeeded", "trial 0 succeeded")
			} else {
				want = append(want, "trial 0 "+string(c.verdict))
			}
			require.Equal(t, append(want, "run completed"), story)
		})
	}
}

// A path that is cut burns no trial: the run asks it again, and pauses, or ends where
// nobody can let it go on, when the plan waits no longer.
func TestPathDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		paths, waits := &scriptedPaths{}, &waiting{}
		paths.set(PathExchange{}) // from the beginning
		cfg := config(testSheet(t, 4, 1), j, &scripted{}, nil)
		cfg.Paths, cfg.Observer = paths, waits
		began := time.Now()
		require.NoError(t, Lead(t.Context(), cfg))
		require.LessOrEqual(t, time.Since(began), 11*time.Minute)
		sameStory(t, j, "run stopped")
		require.Equal(t, "no packet passes between client (10.77.0.1) and server (10.77.0.3) since the run was started here", waits.all[0])
		require.Equal(t, "", waits.all[len(waits.all)-1])
		var told []string
		for _, r := range read(t, j) {
			if r.Type == journal.TypeWaiting {
				told = append(told, body[journal.Waiting](t, r).Fault)
			}
			if r.Type == journal.TypeRunEnded {
				require.Equal(t, "trial 0 has waited for 10m0s (limits.wait) because of the apparatus: "+waits.all[0], body[journal.RunEnded](t, r).Reason)
			}
		}
		require.Equal(t, waits.all, told)
		require.Len(t, told, 2, "the same is told once")
	})
	// For some time: one attempt is lost, and the next begins when packets pass.
	story, ended, took := led(t, "udp", contract.CodeConnectTimeout, pathFine, PathExchange{}, nil)
	require.Equal(t, []string{"start 0/1", "end 0/1 invalid path-down", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded", "run completed"}, story)
	require.Equal(t, "path-down", ended.Reason)
	require.Greater(t, took, time.Minute)
	require.Less(t, took, 90*time.Second)
}

// What is not in order before the first attempt is asked for again: the run waits until the
// listener is up, and connects to the port at which it then is.
func TestFirstAttemptWaitsForTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		notYet, moved := listenerUp, listenerUp
		notYet.Up, notYet.Message = false, "it is not ready yet"
		moved.Port = 5900
		paths := &scriptedPaths{}
		paths.set(PathExchange{Passed: pathMethods, Node: inOrderAt(notYet)})
		go func() {
			time.Sleep(30 * time.Second)
			paths.set(PathExchange{Passed: pathMethods, Node: inOrderAt(moved)})
		}()
		var ports []int
		cfg := config(testSheet(t, 1, 1), j, &scripted{fail: func(p *contract.Parameters) contract.Code {
			ports = append(ports, p.Remote.Port)
			return ""
		}}, nil)
		cfg.Paths, cfg.Network = paths, func(string) string { return "udp" }
		began := time.Now()
		require.NoError(t, Lead(t.Context(), cfg))
		require.GreaterOrEqual(t, time.Since(began), 30*time.Second)
		require.Equal(t, []int{5900}, ports)
	})
}

// A packet filter that is changed back right after an attempt has failed, before anybody
// has heard of it, is not in the way of the exchange, and was in that of the attempt.
func TestInterfaceChangesAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		after  time.Duration
		reason string
	}{
		"changed back": {100 * time.Millisecond, journal.ReasonRadioDown},
		"much later":   {time.Second, "connect-timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			iface := &interfaceAt{}
			_, ended, _ := led(t, "udp", contract.CodeConnectTimeout, pathFine, pathFine, func(cfg *Config) {
				cfg.Interface = iface
				r := cfg.Runner.(*scripted)
				fail := r.fail
				r.fail = func(p *contract.Parameters) contract.Code {
					code := fail(p)
					if code != "" {
						go func() {
							time.Sleep(c.after)
							iface.set("the packet filter of this node was changed")
							iface.set("")
						}()
					}
					return code
				}
			})
			require.Equal(t, c.reason, ended.Reason, ended.Message)
		})
	}
}

type waiting struct {
	NopObserver
	all []string
}

func (w *waiting) Waiting(fault string) { w.all = append(w.all, fault) }

// A path on which packets pass is asked once, and after failures: not between attempts
// that succeed.
func TestPathIsAskedOnlyWhenInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		paths, n := &scriptedPaths{}, 0
		paths.set(pathFine)
		cfg := config(testSheet(t, 4, 1), j, &scripted{fail: func(*contract.Parameters) contract.Code {
			if n++; n == 2 {
				return contract.CodeReset
			}
			return ""
		}}, nil)
		cfg.Paths, cfg.Network = paths, func(string) string { return "tcp" }
		began := time.Now()
		require.NoError(t, Lead(t.Context(), cfg))
		require.Equal(t, []PathMethods{PathTCP | PathTCPFull, PathTCP | PathTCPFull}, paths.asks)
		require.Zero(t, time.Since(began))
	})
}

// A driver that refuses its parameters has sent no packet: that is no property of its
// protocol, and another attempt would be refused as well.
func TestRefusedParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		r := &scripted{fail: func(p *contract.Parameters) contract.Code { return contract.CodeBadParameters }}
		require.NoError(t, Lead(t.Context(), config(testSheet(t, 1, 3), j, r, &fakeRadio{})))
		sameStory(t, j, "start 0/1", "end 0/1 invalid bad-parameters", "trial 0 invalid", "run completed")
	})
}

// A node tells who asks why its listener is not up, and the port of one that had to take
// another: the leading node's clients connect there.
func TestNodeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sheet := testSheet(t, 2, 1)
		j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
		defer j.Close()
		cfg := config(sheet, j, taken{5001}, nil)
		cfg.Role = radio.RoleServer
		cfg.PortHolder = func(network string, port int) string {
			require.Equal(t, "tcp", network)
			if port == 5001 {
				return "python3 (process 7)"
			}
			return ""
		}
		cfg.Network = func(string) string { return "tcp" }
		var ask func(PathQuestion) NodeState
		cfg.AnswerPaths = func(ctx context.Context, _ string, state func(PathQuestion) NodeState) {
			ask = state
			<-ctx.Done()
		}
		_, _, stop := attended(t, cfg)
		s := ask(PathQuestion{Since: time.Minute, Treatments: []string{"a"}})
		require.Equal(t, NodeState{Since: time.Minute, Listeners: []ListenerReport{{Treatment: "a", Port: 5001, Code: "", Message: "port 5001 is held by python3 (process 7); bind: address already in use",
			Outage: "could not be started: port 5001 is held by python3 (process 7); bind: address already in use"}}}, s)
		time.Sleep(time.Hour)
		require.Len(t, ask(PathQuestion{Treatments: []string{"a", "b"}}).Listeners, 2)
		stop()

		cfg.SparePorts = PortRange{5900, 5998}
		k := openJournal(t, filepath.Join(t.TempDir(), "k"), journal.Options{})
		defer k.Close()
		cfg.Journal = k
		_, _, stop = attended(t, cfg)
		time.Sleep(time.Second)
		s = ask(PathQuestion{})
		require.Equal(t, []ListenerReport{{Treatment: "a", Port: 5900, Up: true, UpFor: s.Listeners[0].UpFor}}, s.Listeners)
		stop()

		// The leading node.
		l := openJournal(t, filepath.Join(t.TempDir(), "l"), journal.Options{})
		defer l.Close()
		paths, r := &scriptedPaths{}, &scripted{}
		paths.set(PathExchange{Passed: pathMethods, Node: &s})
		lead := config(sheet, l, r, nil)
		lead.Paths, lead.Network = paths, cfg.Network
		require.NoError(t, Lead(t.Context(), lead))
		require.Equal(t, []int{5900, 5002}, []int{r.started[0].Remote.Port, r.started[1].Remote.Port})
	})
}

// taken is a runner whose listeners cannot open a port.
type taken struct{ port int }

func (r taken) Start(ctx context.Context, protocol string, p *contract.Parameters, payload io.Reader) (Process, error) {
	if p.Local.Port != r.port {
		return standing{"0"}.Start(ctx, protocol, p, payload)
	}
	return cannotListen("bind: address already in use"), nil
}
