package measure_test

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/measure"
)

func TestThresholdsOfAFile(t *testing.T) {
	got, err := measure.ReadThresholds("ours.yaml", []byte("voice_delay: 250ms\nchat_loss: 2.5 %\nfile: 2 MiB\nfile_time: 5m\n"))
	if want := map[string]float64{"voice_delay": 250, "chat_loss": 0.025, "file": 2 << 20, "file_time": 300}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, expected %v", got, err, want)
	}
	if got, err := measure.ReadThresholds("none.yaml", []byte("{}\n")); err != nil || len(got) != 0 {
		t.Errorf("of no thresholds: %v, %v", got, err)
	}
}

// All mistakes are said at once, each with its place, what was expected and what was found.
func TestThresholdsOfAFileAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"voice_mos: 5\n":                          `1:12: voice_mos: expected a number from 1 to 4.41, found "5"`,
		"voice_delay: 250\n":                      `1:14: voice_delay: expected a duration`,
		"voice_delay: 2m\n":                       `1:14: voice_delay: expected 1 ms to 60000 ms, found 120000 ms`,
		"chat_loss: 0.05\n":                       `1:12: chat_loss: expected a share such as "5 %", found "0.05"`,
		"chat_loss: 101 %\n":                      `1:12: chat_loss: expected 0 % to 100 %, found 101 %`,
		"chat_loss: NaN %\n":                      `1:12: chat_loss: expected 0 % to 100 %, found NaN %`,
		"file: 0 B\n":                             `1:7: file: expected 1 B to 1024 GiB, found 0 B`,
		"picture: [1]\n":                          `1:10: picture: expected a size such as "256 KiB", found a list`,
		"voice-mos: 3\n":                          `1:1: unknown key "voice-mos" (did you mean "voice_mos"?)`,
		"voice_mos:\n":                            `voice_mos is missing`,
		"- voice_mos: 3\n":                        `expected a mapping, found a list`,
		"voice_mos: 9\nfile_time: 1s\nfile: x\n":  `3:7: file: expected a size`,
		"voice_mos: 3\nvoice_mos: 3\n":            `2:1: voice_mos is given twice`,
		"file: 1 MiB\nfile_time: 9999h\nfoo: 1\n": `2:12: file_time: expected 0.1 s to 86400 s`,
	} {
		_, err := measure.ReadThresholds("f", []byte(text))
		var problems yamldoc.Problems
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %s", text, err, want)
		}
	}
}

// The sheet says which thresholds are not the defaults.
func TestChangedThresholds(t *testing.T) {
	x := measure.Defaults
	if got := x.Changed(); got != nil {
		t.Errorf("defaults: %q", got)
	}
	x.VoiceMOS, x.ChatLoss, x.PictureBytes = 3.1, 0.025, 1<<20
	want := []string{
		"Voice: quality each way, at least 3.1 MOS (default 3.6 MOS)",
		"Chat and positions: loss each way, at most 2.5 % (default 5 %)",
		"Pictures: size of one 1 MiB (default 100 KiB)",
	}
	if got := x.Changed(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	page := measure.Page{Changed: want}
	if !strings.Contains(page.Text(), "Thresholds that differ from the defaults\n  Voice: quality each way, at least 3.1 MOS") {
		t.Error(page.Text())
	}
}

// The example of docs/measure.md is a file of all thresholds with their defaults.
func TestExampleOfThresholds(t *testing.T) {
	text, err := os.ReadFile("../../docs/measure.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatal("no example")
	}
	got, err := measure.ReadThresholds("docs/measure.md", found[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range measure.Ranges {
		if x, ok := got[r.Key]; !ok || x != r.Default() {
			t.Errorf("%s: %g, the default is %g", r.Key, x, r.Default())
		}
	}
}

// FuzzReadThresholds: a file is taken or refused with places, never a panic, and what is taken
// is in its bounds.
func FuzzReadThresholds(f *testing.F) {
	for _, text := range []string{"voice_mos: 3.1\nchat_loss: 5 %\n", "file: 1e300 GiB\nfile_time: -1h\n", "picture: !!null\n", "a: &a [*a]\n", "chat_loss: Inf %\nvoice_mos: .nan\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := measure.ReadThresholds("f", text)
		var problems yamldoc.Problems
		if err != nil && (!errors.As(err, &problems) || len(problems) == 0) {
			t.Fatalf("error %v (%T)", err, err)
		}
		for _, r := range measure.Ranges {
			if x, ok := got[r.Key]; ok && !(x >= r.Lowest && x <= r.Highest) {
				t.Errorf("%s: %g", r.Key, x)
			}
		}
	})
}
