package campaign

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
)

func TestNext(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	waits := Waits{Abort: 10 * time.Second, Collect: time.Minute}
	reason := "enough"
	base := func(state State, change ...func(*run)) *run {
		r := &run{id: "r-1", state: state, sheetInfo: &sheetInfo{listeners: []journal.ListenerName{{Treatment: "tcp"}, {Treatment: "udt"}, {Treatment: "udt", At: radio.RoleRelay}}, longest: 5 * time.Minute}, listening: map[journal.ListenerName]bool{},
			abort: abort{at: now.Add(-time.Second)}, collectingAt: now.Add(-time.Second),
			participants: []participant{{role: radio.RoleClient, node: "c"}, {role: radio.RoleRelay, node: "r"}, {role: radio.RoleServer, node: "s"}}}
		for i := range r.participants {
			r.participants[i].connected = true
		}
		for _, f := range change {
			f(r)
		}
		return r
	}
	provenance := func(r *run) {
		for i := range r.participants {
			r.participants[i].provenance = true
		}
	}
	listening := func(these ...journal.ListenerName) func(*run) {
		return func(r *run) {
			for _, l := range these {
				r.listening[l] = true
			}
		}
	}
	tcp, udt, relayed := journal.ListenerName{Treatment: "tcp"}, journal.ListenerName{Treatment: "udt"}, journal.ListenerName{Treatment: "udt", At: radio.RoleRelay}
	ended := func(i int, end journal.RunEnd, why string) func(*run) {
		return func(r *run) { r.participants[i].ended, r.participants[i].reason = end, why }
	}
	aborting := func(r *run) { r.abort.reason = &reason }
	faulty := func(r *run) { r.abort.reason, r.abort.fault = &reason, true }
	away := func(which ...int) func(*run) {
		return func(r *run) {
			for _, i := range which {
				r.participants[i].connected = false
			}
		}
	}
	late := func(r *run) { r.abort.at, r.collectingAt = now.Add(-2*time.Minute), now.Add(-2*time.Minute) }
	all := func(end journal.RunEnd) func(*run) {
		return func(r *run) {
			for i := range r.participants {
				r.participants[i].ended = end
			}
		}
	}
	for name, c := range map[string]struct {
		run  *run
		want step
	}{
		"queued":                         {base(Queued), step{action: prepare}},
		"queued behind another":          {base(Queued, func(r *run) { r.blocked = true }), step{}},
		"queued, to be moved for":        {base(Queued, func(r *run) { r.confirmMove = true }), step{action: awaitMove}},
		"not yet its turn to be moved":   {base(Queued, func(r *run) { r.confirmMove, r.blocked = true, true }), step{}},
		"waits":                          {base(Waiting, func(r *run) { r.confirmMove = true }), step{}},
		"moved":                          {base(Waiting, func(r *run) { r.confirmMove = false }), step{action: prepare}},
		"waits and is aborted":           {base(Waiting, func(r *run) { r.confirmMove = true }, aborting), step{end, Aborted, "enough"}},
		"queued and aborted":             {base(Queued, aborting), step{end, Aborted, "enough"}},
		"nothing there yet":              {base(Preparing), step{}},
		"no provenance":                  {base(Preparing, listening(tcp, udt, relayed)), step{}},
		"a listener is missing":          {base(Preparing, provenance, listening(tcp, relayed)), step{}},
		"a relay process is missing":     {base(Preparing, provenance, listening(tcp, udt)), step{}},
		"all there":                      {base(Preparing, provenance, listening(tcp, udt, relayed)), step{action: start}},
		"leader has begun already":       {base(Preparing, func(r *run) { r.attempted = true }), step{action: start}},
		"leader's disk is full":          {base(Preparing, ended(0, journal.RunStopped, "disk full")), step{action: collect}},
		"server's disk is full":          {base(Preparing, ended(2, journal.RunStopped, "disk full")), step{action: requestAbort, message: "node s stopped: disk full"}},
		"running":                        {base(Running), step{}},
		"running, relay aborted":         {base(Running, ended(1, journal.RunAborted, "")), step{action: requestAbort, message: "node r aborted"}},
		"leader is done":                 {base(Running, ended(0, journal.RunCompleted, "")), step{action: collect}},
		"abort, nobody ended":            {base(Running, aborting), step{}},
		"abort, all ended":               {base(Running, aborting, all(journal.RunAborted)), step{end, Aborted, "enough"}},
		"abort, nobody there":            {base(Running, aborting, away(0, 1, 2)), step{end, Aborted, "enough"}},
		"abort, the one there has ended": {base(Running, aborting, away(1, 2), ended(0, journal.RunAborted, "")), step{end, Aborted, "enough"}},
		"abort, in-band, so no contact":  {base(Running, aborting, away(0, 1, 2), func(r *run) { r.inBand = true }), step{}},
		"abort, one never ends":          {base(Running, aborting, late), step{end, Aborted, "enough"}},
		"abort for a fault":              {base(Running, faulty, all(journal.RunAborted)), step{end, Stopped, "enough"}},
		"abort after the leader is done": {base(Running, aborting, ended(0, journal.RunCompleted, "")), step{action: collect}},
		"collecting":                     {base(Collecting, ended(0, journal.RunCompleted, "")), step{}},
		"collected":                      {base(Collecting, all(journal.RunCompleted)), step{action: end, state: Completed}},
		"collected, aborted late":        {base(Collecting, all(journal.RunCompleted), aborting), step{action: end, state: Completed}},
		"relay's journal is late": {base(Collecting, all(journal.RunCompleted), ended(1, "", ""), late),
			step{end, Completed, "the journal of r is not complete, and nothing came for 1m0s"}},
		"relay's journal is late but comes": {base(Collecting, all(journal.RunCompleted), ended(1, "", ""), late, func(r *run) { r.participants[1].deliveredAt = now.Add(-time.Second) }), step{}},
		"leader stopped": {base(Collecting, all(journal.RunCompleted), ended(0, journal.RunStopped, "disk full")),
			step{end, Stopped, "node c stopped: disk full"}},
		"leader aborted by itself": {base(Collecting, all(journal.RunCompleted), ended(0, journal.RunAborted, "by hand")),
			step{end, Aborted, "node c aborted: by hand"}},
		"server stopped at the end": {base(Collecting, all(journal.RunCompleted), ended(2, journal.RunStopped, "disk full")),
			step{end, Completed, "node s stopped: disk full"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, next(c.run, now, waits))
		})
	}
}

func TestChoose(t *testing.T) {
	sheet := &runsheet.Sheet{
		Cell:     runsheet.Cell{Radio: "prc"},
		Network:  &radio.Network{},
		Topology: radio.Topology{Stations: []radio.Station{{Role: radio.RoleClient}, {Role: radio.RoleRelay}, {Role: radio.RoleServer}}},
		Treatments: []runsheet.Treatment{
			{Name: "tcp-bbr", Protocol: "tcp", DriverVersion: "1", Options: map[string]any{"congestion": "bbr"}},
			{Name: "haul", Protocol: "haul", Missing: "there is no driver haul"}},
	}
	real := *sheet
	real.Network = nil
	tcp := []nodes.Driver{{Name: "tcp", Version: "1", Choices: map[string]string{"congestion": "reno, cubic,bbr"}}}
	onlyReno := []nodes.Driver{{Name: "tcp", Version: "1", Choices: map[string]string{"congestion": "reno"}}}
	connected := func(change ...func([]candidate) []candidate) []candidate {
		out := []candidate{
			{name: "c", role: radio.RoleClient, emulated: true, connected: true, drivers: tcp},
			{name: "r", role: radio.RoleRelay, emulated: true, connected: true},
			{name: "s", role: radio.RoleServer, emulated: true, connected: true, drivers: tcp}}
		for _, f := range change {
			out = f(out)
		}
		return out
	}
	with := func(i int, f func(*candidate)) func([]candidate) []candidate {
		return func(c []candidate) []candidate { f(&c[i]); return c }
	}
	none := func(role radio.Role) string { return noNode(role, nil, false) }
	add := func(x candidate) func([]candidate) []candidate {
		return func(c []candidate) []candidate { return append(c, x) }
	}
	realRadio := func(name string) func([]candidate) []candidate {
		return func(c []candidate) []candidate {
			for i := range c {
				c[i].emulated, c[i].radio = false, name
			}
			return c
		}
	}
	for name, c := range map[string]struct {
		sheet    *runsheet.Sheet
		nodes    []candidate
		client   string
		problems []string
	}{
		"all there": {sheet, connected(), "c", nil},
		"nobody":    {sheet, nil, "", []string{none("client"), none("relay"), none("server")}},
		"relay is away": {sheet, connected(with(1, func(c *candidate) { c.connected, c.contact = false, time.Date(2026, 5, 1, 8, 29, 41, 0, time.UTC) })), "",
			[]string{"no relay node is connected; known and without contact: r (last contact 2026-05-01 08:29:41 UTC): check that it is on, that its agent runs and that it reaches the orchestrator"}},
		"four are away": {sheet, connected(with(1, func(c *candidate) { c.connected = false }), add(candidate{name: "r2", role: radio.RoleRelay, contact: time.Unix(200, 0)}),
			add(candidate{name: "r3", role: radio.RoleRelay, contact: time.Unix(100, 0)}), add(candidate{name: "r4", role: radio.RoleRelay, contact: time.Unix(300, 0)}), add(candidate{name: "r5", role: radio.RoleRelay, virtual: true})), "",
			[]string{"no relay node is connected; known and without contact: r4 (last contact 1970-01-01 00:05:00 UTC), r2 (last contact 1970-01-01 00:03:20 UTC), r3 (last contact 1970-01-01 00:01:40 UTC): check that it is on, that its agent runs and that it reaches the orchestrator"}},
		"prefers idle":   {sheet, connected(with(0, func(c *candidate) { c.busy = true }), add(candidate{name: "d", role: radio.RoleClient, emulated: true, connected: true, drivers: tcp})), "d", nil},
		"busy will do":   {sheet, connected(with(0, func(c *candidate) { c.busy = true })), "c", nil},
		"not supported":  {sheet, connected(with(2, func(c *candidate) { c.drivers = []nodes.Driver{{Name: "tcp", Unsupported: "no kernel"}} })), "c", nil},
		"no driver":      {sheet, connected(with(0, func(c *candidate) { c.drivers = nil })), "", []string{"treatment tcp-bbr: node c has no driver tcp"}},
		"other version":  {sheet, connected(with(0, func(c *candidate) { c.drivers = []nodes.Driver{{Name: "tcp", Version: "2"}} })), "", []string{"treatment tcp-bbr: node c has version 2 of driver tcp, the plan was checked against 1"}},
		"no such choice": {sheet, connected(with(0, func(c *candidate) { c.drivers = onlyReno })), "c", nil},
		"prefers where more runs": {sheet, connected(with(0, func(c *candidate) { c.drivers = onlyReno }),
			add(candidate{name: "d", role: radio.RoleClient, emulated: true, connected: true, busy: true, drivers: tcp})), "d", nil},
		"another can":  {sheet, connected(with(0, func(c *candidate) { c.drivers = nil }), add(candidate{name: "d", role: radio.RoleClient, emulated: true, connected: true, drivers: tcp})), "d", nil},
		"real radios":  {&real, connected(realRadio("prc")), "c", nil},
		"wrong radio":  {&real, connected(realRadio("sdr"))[:1], "", []string{"node c has radio sdr, the plan asks for prc", none("relay"), none("server")}},
		"not emulated": {&real, connected()[1:2], "", []string{none("client"), "node r has an emulated radio, and radio prc cannot be emulated", none("server")}},
		"never mixed":  {sheet, append(connected()[:2], connected(realRadio("prc"))[2]), "", []string{none("server")}},
		"two labs":     {sheet, connected(with(2, func(c *candidate) { c.lab = "other" })), "", []string{none("server")}},
		"no name":      {&real, connected(realRadio("")), "c", nil},
		"half a name":  {&real, connected(realRadio("prc"), with(2, func(c *candidate) { c.radio = "" })), "", []string{none("server")}},
		"not vouched": {sheet, connected(realRadio(""), with(2, func(c *candidate) { c.problem = "the emulator does not answer" })), "",
			[]string{"node s was started for a lab and does not count as emulated: the emulator does not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, problems := choose(c.sheet, c.nodes, false)
			require.Equal(t, c.problems, problems)
			require.Equal(t, c.client, chosen[radio.RoleClient])
		})
	}
}

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newID()
		require.Regexp(t, `^[a-z][a-z0-9]{7}$`, id)
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestVirtualNodesAreChosenOnlyWhenAskedFor(t *testing.T) {
	sheet := &runsheet.Sheet{Network: &radio.Network{}, Topology: radio.Topology{Stations: []radio.Station{{Role: radio.RoleClient}}}}
	live := candidate{name: "live", role: radio.RoleClient, emulated: true, connected: true}
	virtual := candidate{name: "virtual", role: radio.RoleClient, emulated: true, virtual: true, connected: true}
	both := []candidate{live, virtual}
	for want, asked := range map[string]bool{"live": false, "virtual": true} {
		chosen, problems := choose(sheet, both, asked)
		require.Empty(t, problems)
		require.Equal(t, want, chosen[radio.RoleClient])
	}
	_, problems := choose(sheet, []candidate{virtual}, false)
	require.NotEmpty(t, problems)
}

func TestRunsToConfirm(t *testing.T) {
	sheets := []*runsheet.Sheet{{}, {}, {}, {}}
	for i, name := range []string{"near", "near", "far", "near"} {
		sheets[i].Cell.Topology = name
	}
	chosen := []map[radio.Role]string{{radio.RoleClient: "c"}, {radio.RoleClient: "c"}, {radio.RoleClient: "c"}, {radio.RoleClient: "c"}}
	for name, c := range map[string]struct {
		moves    Moves
		emulated bool
		want     []bool
	}{
		"emulated":           {MovesOnReal, true, []bool{false, false, false, false}},
		"real":               {MovesOnReal, false, []bool{false, false, true, true}},
		"asked for":          {MovesConfirm, true, []bool{true, false, true, true}},
		"asked for, real":    {MovesConfirm, false, []bool{true, false, true, true}},
		"not wanted":         {MovesNone, true, []bool{false, false, false, false}},
		"not wanted on real": {MovesNone, false, []bool{false, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			got := runsToConfirm(&Plan{Sheets: sheets, Moves: c.moves}, chosen, []candidate{{name: "b", emulated: !c.emulated}, {name: "c", emulated: c.emulated}})
			require.Equal(t, c.want, got)
		})
	}
}
