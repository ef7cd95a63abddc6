package fleet_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/radio"
	"linktrial/orchestrator/campaign/nodes"
	"linktrial/orchestrator/fleet"
)

// A preflight of real radios names others that could transmit over them, and
// gives each node the profile of its radio.
func TestOtherRadios(t *testing.T) {
	r := newRig(t, fleet.Config{})
	with := func(name string) func(*nodes.Registration) {
		return func(x *nodes.Registration) { x.Emulated, x.Radio = false, name }
	}
	r.agent("client", false, with("mpu4"))
	r.agent("server", false, with("mpu4"))
	id, err := r.StartPreflight(t.Context(), fleet.Request{})
	require.NoError(t, err)
	c := find(r.ended(id), "client", "channel")
	require.Equal(t, linktrialv1.CheckState_CHECK_STATE_OK, c.State)
	require.Contains(t, c.Found, "2487 to 2527 MHz")

	// Another team's radio, whose frequency is not known.
	r.agent("relay", false, with("prc-152a"))
	id, err = r.StartPreflight(t.Context(), fleet.Request{Nodes: []string{"client", "server"}})
	require.NoError(t, err)
	c = find(r.ended(id), "client", "channel")
	require.Equal(t, linktrialv1.CheckState_CHECK_STATE_WARNING, c.State)
	require.Contains(t, c.Found, "relay (the frequency or channel width of radio prc-152a is not known)")
	require.Contains(t, c.Remedy, "never has both in a run at the same time")
}

func TestEmulatedRadiosHaveNoChannelCheck(t *testing.T) {
	r := newRig(t, fleet.Config{})
	r.agent("client", false)
	id, err := r.StartPreflight(t.Context(), fleet.Request{})
	require.NoError(t, err)
	require.Nil(t, find(r.ended(id), "client", "channel"))
}

func TestEncodeProfile(t *testing.T) {
	b, err := fleet.EncodeProfile(nil)
	require.NoError(t, err)
	require.Nil(t, b)
	forwards := true
	p := &radio.Profile{Name: "r", Attach: &radio.Attach{Reach: "by cable", Roles: map[radio.Role]radio.AttachRole{radio.RoleRelay: {Forwarding: &forwards}}}, Telemetry: radio.EmulatedTelemetry()}
	b, err = fleet.EncodeProfile(p)
	require.NoError(t, err)
	var back radio.Profile
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, p, &back)
}

// What a node reports is bounded, and its age rises.
func TestCleanTelemetry(t *testing.T) {
	many := make([]*linktrialv1.TelemetryState, 1000)
	for i := range many {
		many[i] = &linktrialv1.TelemetryState{Source: "x"}
	}
	require.Len(t, fleet.CleanTelemetry(many), 64)
	got := fleet.CleanTelemetry([]*linktrialv1.TelemetryState{nil, {}, {Source: "a\x00b", Error: strings.Repeat("e", 10_000), AgeSeconds: math.NaN(),
		Values: []*linktrialv1.TelemetryReading{nil, {Name: "n", Value: math.Inf(1)}, {Name: "snr", Value: 3, Unit: "dB"}}}})
	require.Len(t, got, 1)
	require.Equal(t, "ab", got[0].Source)
	require.Len(t, got[0].Error, 4000)
	require.Zero(t, got[0].AgeSeconds)
	require.Len(t, got[0].Values, 1)

	r := newRig(t, fleet.Config{})
	told := time.Now()
	r.SetHealth("client", fleet.Health{Telemetry: []*linktrialv1.TelemetryState{{Source: "a", AgeSeconds: 2}}, ReportedAt: told})
	r.SetHealth("client", fleet.Health{Discharging: true}) // it had to send little
	h := r.Health("client")
	require.True(t, h.Discharging)
	require.InDelta(t, 7, h.Aged(told.Add(5 * time.Second))[0].AgeSeconds, 1e-6)
	require.InDelta(t, 2, h.Telemetry[0].AgeSeconds, 1e-6)
}
