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
	for _, m := range regexp.MustCompile(`(?m)^const (pausing|paused|aborting|inGuests|storing) = state\('[^']*', '([^']*)'`).FindAllSubmatch(text, -1) {
		words[string(m[1])] = string(m[2])
	}
	const running, completed = linktrialv1.RunState_RUN_STATE_RUNNING, linktrialv1.RunState_RUN_STATE_COMPLETED
	for want, r := range map[string]*linktrialv1.Run{
		words["pausing"]:             {State: running, Paused: true, Pausing: true},
		words["paused"]:              {State: running, Paused: true},
		words["aborting"]:            {State: running, Paused: true, Aborting: true},
		words["inGuests"]:            {State: linktrialv1.RunState_RUN_STATE_QUEUED, Virtual: true},
		words["storing"]:             {State: linktrialv1.RunState_RUN_STATE_QUEUED, Virtual: true, GuestsEnded: true},
		words["RUN_STATE_COMPLETED"]: {State: completed, Virtual: true, GuestsEnded: true},
		words["RUN_STATE_WAITING"]:   {State: linktrialv1.RunState_RUN_STATE_WAITING, Paused: true},
	} {
		require.Equal(t, want, terminal.RunWord(r))
	}
}

func TestOffset(t *testing.T) {
	for seconds, want := range map[float64]string{0: "+0.000 ms", 0.0123456: "+12.346 ms", -0.9: "-900.000 ms", 2.5: "+2.500 s", -179.999999: "-3m0s", 7325: "+2h2m5s"} {
		if got := terminal.Offset(seconds); got != want {
			t.Errorf("%v s: %s, expected %s", seconds, got, want)
		}
	}
}
