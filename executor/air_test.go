package executor

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
	"linktrial/protocols/contract"
)

// carried is the traffic of a transfer of treatment a: 1000 bytes to the server's port
// 5001, in 1100.
func carried() []radiocontrol.Traffic {
	var out []radiocontrol.Traffic
	for _, hop := range [][2]radio.Role{{radio.RoleClient, radio.RoleRelay}, {radio.RoleRelay, radio.RoleServer}} {
		out = append(out, radiocontrol.Traffic{From: hop[0], To: hop[1], Source: radio.RoleClient, Destination: radio.RoleServer, Protocol: 6, DestinationPort: 5001,
			SentPackets: 3, SentBytes: 1100, DeliveredPackets: 3, DeliveredBytes: 1100})
	}
	return out
}

// otherTraffic is other traffic at the last hop: from a port of the server to the client's.
func otherTraffic(source, destination int, bytes int64) radiocontrol.Traffic {
	return radiocontrol.Traffic{From: radio.RoleServer, To: radio.RoleRelay, Source: radio.RoleServer, Destination: radio.RoleClient, Protocol: 17,
		SourcePort: source, DestinationPort: destination, SentPackets: 4, SentBytes: bytes, DeliveredPackets: 4, DeliveredBytes: bytes}
}

// Packets of other listeners and of no listener make an attempt worthless, whose they
// are is told, and the trial is repeated: it says nothing of the protocol.
func TestForeignTraffic(t *testing.T) {
	for name, c := range map[string]struct {
		other  radiocontrol.Traffic
		rule   bool // the plan has one for interfering traffic
		code   contract.Code
		repeat bool
		words  []string
	}{
		"another listener": {otherTraffic(5002, 0, 7000), false, "", true, []string{"7000 bytes, beside 1100 of the attempt", "UDP, were sent by the server (10.77.0.3, port 5002) to the client (10.77.0.1)",
			"port 5002 of the server is that of the listener of treatment b (driver b)", "the flow ended with a result"}},
		"the attempt failed":         {otherTraffic(5002, 0, 7000), false, contract.CodeReset, true, []string{"the flow ended with reset"}},
		"no listener":                {otherTraffic(4000, 9, 7000), false, "", true, []string{"(10.77.0.3, port 4000) to the client (10.77.0.1, port 9)", "no listener of the run has these ports"}},
		"a listener with a rule":     {otherTraffic(5002, 0, 7000), true, "", true, nil},
		"no listener with a rule":    {otherTraffic(4000, 9, 7000), true, "", false, nil},
		"four packets that are left": {otherTraffic(5002, 0, 6000), false, "", false, nil},
		"the attempt's own":          {otherTraffic(5001, 0, 7000), false, "", false, nil},
		// The port of the server's listener is any other at the client.
		"the same port elsewhere": {radiocontrol.Traffic{From: radio.RoleServer, To: radio.RoleRelay, Source: radio.RoleServer, Destination: radio.RoleClient, Protocol: 17, DestinationPort: 5001, SentBytes: 7000}, false, "", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				s, err := runsheet.Decode(testSheet(t, 1, 1))
				require.NoError(t, err)
				if c.rule {
					s.Valid = &runsheet.Valid{Interfering: &runsheet.Interfering{Bytes: 1 << 20}}
				}
				sheet, err := s.Encode()
				require.NoError(t, err)
				r, attempts := &scripted{}, 0
				r.fail = func(p *contract.Parameters) contract.Code {
					if attempts++; attempts == 1 && p.Role == contract.RoleClient {
						return c.code
					}
					return ""
				}
				a := &fakeRadio{traffic: [][]radiocontrol.Traffic{append(carried(), c.other), carried()}}
				require.NoError(t, Lead(context.Background(), config(sheet, j, r, a)))
				want := []string{"start 0/1", "end 0/1 succeeded", "trial 0 succeeded", "run completed"}
				if c.repeat {
					want = []string{"start 0/1", "end 0/1 invalid foreign-traffic", "start 0/2", "end 0/2 succeeded", "trial 0 succeeded", "run completed"}
				}
				sameStory(t, j, want...)
				for _, rec := range read(t, j) {
					if rec.Type == journal.TypeAttemptEnded && c.repeat {
						e := body[journal.AttemptEnded](t, rec)
						for _, w := range c.words {
							require.True(t, e.Verdict == journal.Succeeded || strings.Contains(e.Message, w), "%q does not have %q", e.Message, w)
						}
					}
				}
			})
		})
	}
}

// What a driver says that it sent again is held against what the radio lost.
func TestCountsAreHeldAgainstTheRadio(t *testing.T) {
	count := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		final *contract.Sample
		lost  int64
		want  string
	}{
		"none sent again":              {&contract.Sample{Retransmits: count(0)}, 25, journal.ReasonFewerThanLost},
		"none sent again, few lost":    {&contract.Sample{Retransmits: count(0)}, 24, ""},
		"not counted":                  {&contract.Sample{}, 1000, ""},
		"no last sample":               {nil, 1000, ""},
		"as many":                      {&contract.Sample{Retransmits: count(1000)}, 1000, ""},
		"some by repairs":              {&contract.Sample{Retransmits: count(3), More: map[string]float64{contract.MoreRepairs: 997}}, 1000, ""},
		"less than a quarter of these": {&contract.Sample{Retransmits: count(243)}, 1000, journal.ReasonFewerThanLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := openJournal(t, filepath.Join(t.TempDir(), "j"), journal.Options{})
				defer j.Close()
				traffic := carried()
				traffic[1].MissedLarge = c.lost
				if c.final != nil {
					c.final.ElapsedNS, c.final.SentBytes = 1, 1000
				}
				require.NoError(t, Lead(context.Background(), config(testSheet(t, 1, 3), j, &scripted{final: c.final}, &fakeRadio{traffic: [][]radiocontrol.Traffic{traffic}})))
				end := "end 0/1 succeeded"
				verdict := "succeeded"
				if c.want != "" {
					end, verdict = "end 0/1 invalid "+c.want, "invalid"
				}
				sameStory(t, j, "start 0/1", end, "trial 0 "+verdict, "run completed")
			})
		})
	}
}
