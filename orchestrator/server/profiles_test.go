package server_test

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/store/storetest"
)

const ownRadio = `name: own-hf
title: An HF radio of our own
manufacturer: somebody
model: one
waveform: none
figures:
  - {name: rate, value: 9600 bit/s, source: measured}
emulation:
  medium: {value: half-duplex, source: measured}
  rate: {value: 9600 bit/s, source: measured}
  processing_delay: {value: 20ms, source: measured}
  mtu: {value: 1500 B, source: measured}
  queue: {bytes: 64 KiB, source: measured}
  channel: {model: perfect, source: measured}
`

// A radio profile that was just saved is in lists and plans at once, also after a restart,
// and stays while a plan or a node uses it.
func TestSavedRadioProfile(t *testing.T) {
	url, data := storetest.URL(t), t.TempDir()
	s, ctx := serveAll(t, url, data, nil), t.Context()
	save := func(text string) error {
		_, err := s.catalog.SaveProfile(ctx, connect.NewRequest(&linktrialv1.SaveProfileRequest{Name: "own-hf", Text: []byte(text)}))
		return err
	}
	remove := func() error {
		_, err := s.catalog.DeleteProfile(ctx, connect.NewRequest(&linktrialv1.DeleteProfileRequest{Name: "own-hf"}))
		return err
	}
	text := strings.Replace(fmt.Sprintf(testPlan, "64 KiB"), "prc-117g-anw2c", "own-hf", 1)
	problems := func() int {
		t.Helper()
		res, err := s.operator.CheckPlan(ctx, connect.NewRequest(&linktrialv1.CheckPlanRequest{File: "own.yaml", Text: []byte(text)}))
		require.NoError(t, err)
		return len(res.Msg.Problems)
	}
	require.Equal(t, 1, problems())
	fails(t, save(strings.Replace(ownRadio, "half-duplex", "half-duple", 1)), connect.CodeInvalidArgument, "own-hf.yaml:9:", "half-duple")
	require.NoError(t, save(ownRadio))
	for _, restarted := range []bool{false, true} {
		if restarted {
			stop(t, s.server)
			s = serveAll(t, url, data, nil)
		}
		require.Zero(t, problems())
		all, err := s.operator.ListProfiles(ctx, connect.NewRequest(&linktrialv1.ListProfilesRequest{}))
		require.NoError(t, err)
		require.Equal(t, []string{"own-hf"}, all.Msg.SavedRadios)
		require.Contains(t, strings.Join(all.Msg.Radios, ""), "An HF radio of our own")
	}

	for name, text := range map[string]string{"runnable": text, "draft": text + "nonsense: 1\n", "other": fmt.Sprintf(testPlan, "64 KiB") + "# not own-hf2\n"} {
		_, err := s.library.SavePlan(ctx, connect.NewRequest(&linktrialv1.SavePlanRequest{Name: name, Text: []byte(text)}))
		require.NoError(t, err)
	}
	fails(t, remove(), connect.CodeFailedPrecondition, "in use by the plans draft, runnable:")
	for _, name := range []string{"runnable", "draft"} {
		_, err := s.library.DeletePlan(ctx, connect.NewRequest(&linktrialv1.DeletePlanRequest{Name: name}))
		require.NoError(t, err)
	}
	require.NoError(t, remove())
	fails(t, remove(), connect.CodeNotFound, "own-hf")
	require.Equal(t, 1, problems())
}
