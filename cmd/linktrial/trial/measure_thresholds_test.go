package trial

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

// Flags win over the file, and what neither gives keeps the orchestrator's default.
func TestThresholdsOfFileAndFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ours.yaml")
	read := func(text string, args ...string) (*linktrialv1.MeasureThresholds, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd, flags := &cobra.Command{}, thresholdFlags{}
		flags.register(cmd)
		if err := cmd.ParseFlags(append([]string{"--thresholds", file}, args...)); err != nil {
			t.Fatal(err)
		}
		return flags.read(cmd)
	}
	got, err := read("voice_delay: 250ms\nchat_loss: 2 %\nfile: 2 MiB\n", "--voice-delay", "300ms", "--picture", "1MiB")
	want := &linktrialv1.MeasureThresholds{VoiceDelayMs: new(300.0), ChatLoss: new(0.02), PictureBytes: new(1048576.0), FileBytes: new(2097152.0)}
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("%v, %v, expected %v", got, err, want)
	}
	if _, err := read("voice_delay: 250ms\nfile: big\n"); err == nil || !strings.Contains(err.Error(), "ours.yaml:2:7: file: expected a size") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	flags := thresholdFlags{from: file}
	if _, err := flags.readFile(); err == nil || !strings.Contains(err.Error(), "--thresholds: ") {
		t.Errorf("without the file: %v", err)
	}
}
