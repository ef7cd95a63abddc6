package terminal_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/terminal"
)

// The states of runs have the words of the pages.
func TestWordsOfStatesAreThoseOfThePages(t *testing.T) {
	text, err := os.ReadFile("../../../web/src/lib/states.ts")
	require.NoError(t, err)
	words := map[string]string{}
	for _, m := range regexp.MustCompile(`\[RunState\.(\w+)\]: state\('[^']*', '([^']*)'`).FindAllSubmatch(text, -1) {
		words["RUN_STATE_"+string(m[1])] = string(m[2])
	}
	require.Len(t, words, len(linktrialv1.RunState_name)-1, "all but the unspecified one")
	for name, word := range words {
		require.Equal(t, word, terminal.StateWord(linktrialv1.RunState(linktrialv1.RunState_value[name])), name)
	}
	for _, m := range regexp.MustCompile(`(?m)^const (pausing|paused|inGuests|storing) = state\('[^']*', '([^']*)'`).FindAllSubmatch(text, -1) {
		words[string(m[1])] = string(m[2])
	}
	const running, completed = linktrialv1.RunState_RUN_STATE_RUNNING, linktrialv1.RunState_RUN_STATE_COMPLETED
	for want, r := range map[string]*linktrialv1.Run{
		words["pausing"]:             {State: running, Paused: true, Pausing: true},
		words["paused"]:              {State: running, Paused: true},
		words["inGuests"]:            {State: linktrialv1.RunState_RUN_STATE_QUEUED, Virtual: true},
		words["storing"]:             {State: linktrialv1.RunState_RUN_STATE_QUEUED, Virtual: true, GuestsEnded: true},
		words["RUN_STATE_COMPLETED"]: {State: completed, Virtual: true, GuestsEnded: true},
		words["RUN_STATE_WAITING"]:   {State: linktrialv1.RunState_RUN_STATE_WAITING, Paused: true},
	} {
		require.Equal(t, want, terminal.RunWord(r))
	}
}
