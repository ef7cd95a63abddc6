package executor

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/protocols/contract"
)

// What both ends count says where packets to a port do not pass, and only where it is no
// chance.
func TestPortJudge(t *testing.T) {
	const udp = 17
	far := func(arrived, passed, sent, left int) *PortCounts {
		return &PortCounts{Protocol: udp, Arrived: arrived, Passed: passed, Sent: sent, Left: left}
	}
	for name, c := range map[string]struct {
		x    PortExchange
		want portVerdict
		text string
	}{
		"an agent without the check": {PortExchange{}, portUnknown, ""},
		"it may not count there":     {PortExchange{Far: &PortCounts{Unknown: "no"}}, portUnknown, ""},
		"it may not count here":      {PortExchange{Near: PortCounts{Unknown: "no", Sent: 20}, Far: far(0, 0, 0, 0)}, portUnknown, ""},
		"it passes":                  {PortExchange{Near: PortCounts{Sent: 1, Left: 1, Arrived: 1, Passed: 1}, Far: far(1, 1, 1, 1), Asked: 1, Answered: 1}, portPasses, ""},
		"not sent, yet":              {PortExchange{Near: PortCounts{Sent: 4}, Far: far(0, 0, 0, 0), Asked: 4, Answered: 4}, portUnknown, ""},
		"not sent":                   {PortExchange{Near: PortCounts{Sent: 5, Fault: "operation not permitted"}, Far: far(0, 0, 0, 0), Asked: 5, Answered: 5}, portNotSent, "UDP to port 5005 of the server is blocked: of 5 packets none left the client (operation not permitted); change the firewall of the client, which must let UDP out at ports 5001 to 5999"},
		"lost, may be chance":        {PortExchange{Near: PortCounts{Sent: 19, Left: 19}, Far: far(0, 0, 0, 0), Asked: 20, Answered: 20}, portUnknown, ""},
		"lost, like all":             {PortExchange{Near: PortCounts{Sent: 20, Left: 20}, Far: far(0, 0, 0, 0), Asked: 20, Answered: 15}, portUnknown, ""},
		"lost":                       {PortExchange{Near: PortCounts{Sent: 20, Left: 20}, Far: far(0, 0, 0, 0), Asked: 20, Answered: 16}, portLost, "UDP to port 5005 of the server is blocked: 20 packets left the client, none arrived at the server, while 16 of 20 questions at another port were answered; look for a firewall or a filter between the two, and whether the radio carries UDP"},
		"not let in":                 {PortExchange{Near: PortCounts{Sent: 5, Left: 5}, Far: far(5, 0, 0, 0), Asked: 5, Answered: 5}, portNotLetIn, "UDP to port 5005 of the server is blocked: 5 packets arrived at the interface of the server, which dropped or refused all of them; change the firewall of the server, which must let UDP in at ports 5001 to 5999"},
		"not let in, some lost":      {PortExchange{Near: PortCounts{Sent: 9, Left: 9}, Far: far(4, 0, 0, 0), Asked: 9, Answered: 5}, portUnknown, ""},
		"not answered":               {PortExchange{Near: PortCounts{Sent: 5, Left: 5}, Far: far(5, 5, 5, 0), Asked: 5, Answered: 5}, portNotAnswered, "UDP to port 5005 of the server is blocked: 5 packets arrived at the server, and of its answers none left it; change the firewall of the server, which must let UDP out at ports 5001 to 5999"},
		"answers lost, may chance":   {PortExchange{Near: PortCounts{Sent: 9, Left: 9}, Far: far(9, 9, 9, 9), Asked: 9, Answered: 9}, portUnknown, ""},
		"answers lost":               {PortExchange{Near: PortCounts{Sent: 20, Left: 20}, Far: far(20, 20, 20, 20), Asked: 20, Answered: 20}, portAnswersLost, "UDP to port 5005 of the server is blocked: 20 answers left the server, none arrived at the client, while 20 of 20 questions at another port were answered; look for a firewall or a filter between the two, and whether the radio carries UDP"},
		"answers not let in":         {PortExchange{Near: PortCounts{Sent: 5, Left: 5, Arrived: 5}, Far: far(5, 5, 5, 5), Asked: 5, Answered: 5}, portAnswersNotLet, "UDP to port 5005 of the server is blocked: 5 answers arrived at the interface of the client, which dropped or refused all of them; change the firewall of the client, which must let UDP in at ports 5001 to 5999"},
	} {
		require.Equal(t, c.want, c.x.judge(), name)
		require.Equal(t, c.text, c.x.text("client", "server", 5005), name)
	}
}

// A port that is blocked makes a failure the apparatus', whatever its reason; the run waits
// for the port. One that passes, or of which nothing is known, leaves it the protocol's.
func TestPortVerdicts(t *testing.T) {
	blocked := PortExchange{Near: PortCounts{Sent: 5, Left: 5}, Far: &PortCounts{Protocol: 6, Arrived: 5}, Asked: 5, Answered: 5}
	passes := PortExchange{Near: PortCounts{Sent: 1, Left: 1, Arrived: 1, Passed: 1}, Far: &PortCounts{Protocol: 6, Arrived: 1, Passed: 1, Left: 1}, Asked: 1, Answered: 1}
	for _, code := range []contract.Code{contract.CodeConnectTimeout, contract.CodeConnectRefused, contract.CodeUnreachable, contract.CodeReset, contract.CodeTransferTimeout} {
		for name, c := range map[string]struct {
			port    PortExchange
			blocked bool
		}{"blocked": {blocked, true}, "passes": {passes, false}, "an agent without the check": {PortExchange{}, false}} {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				paths := &scriptedPaths{port: c.port}
				paths.set(pathFine)
				failed := false
				cfg := config(testSheet(t, 1, 1), j, &scripted{fail: func(*contract.Parameters) contract.Code {
					if failed {
						return ""
					}
					failed = true
					go func() { // it is mended while the run waits
						time.Sleep(time.Minute)
						paths.mu.Lock()
						defer paths.mu.Unlock()
						paths.port = passes
					}()
					return code
				}}, nil)
				cfg.Paths, cfg.Network = paths, func(string) string { return "tcp" }
				began := time.Now()
				require.NoError(t, Lead(t.Context(), cfg))
				took := time.Since(began)
				story := read(t, j)
				var ended journal.AttemptEnded
				for _, x := range story {
					if x.Type == journal.TypeAttemptEnded {
						ended = body[journal.AttemptEnded](t, x)
						break
					}
				}
				time.Sleep(2 * time.Minute) // for the one that mends
				if !c.blocked {
					require.NotEqual(t, journal.ReasonPathBlocked, ended.Reason, name)
					require.Equal(t, 1, paths.ports)
					return
				}
				require.Equal(t, journal.ReasonPathBlocked, ended.Reason)
				require.Contains(t, ended.Message, "TCP to port 5001 of the server is blocked")
				require.Contains(t, ended.Message, "the flow ended with "+string(code))
				require.Greater(t, took, time.Minute, "it waits for the port")
				require.Less(t, took, 2*time.Minute)
				sameStory(t, j, "start 0/1", "end 0/1 invalid path-blocked", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded", "run completed")
			})
		}
	}
}
