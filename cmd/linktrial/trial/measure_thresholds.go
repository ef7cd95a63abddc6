package trial

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/internal/inputfile"
	"linktrial/internal/unit"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/measure"
)

// thresholdFlags are the thresholds of the judgement.
type thresholdFlags struct {
	mos, loss                                    float64
	voiceDelay, chatDelay, pictureTime, fileTime time.Duration
	picture, file                                string
	from                                         string // a file
}

func (t *thresholdFlags) register(cmd *cobra.Command) {
	d := measure.Defaults
	milliseconds := func(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
	f := cmd.Flags()
	f.StringVar(&t.from, "thresholds", "", "file of thresholds (YAML, docs/measure.md); those given by flags win over it")
	f.Float64Var(&t.mos, "voice-mos", d.VoiceMOS, "voice: least quality of each way (MOS by ITU-T G.107)")
	f.DurationVar(&t.voiceDelay, "voice-delay", milliseconds(d.VoiceDelayMS), "voice: longest one-way delay of 95 % of the packets (ITU-T G.114)")
	f.Float64Var(&t.loss, "chat-loss", d.ChatLoss, "chat and positions: largest share of packets, and of messages, lost, 0 to 1")
	f.DurationVar(&t.chatDelay, "chat-delay", milliseconds(d.ChatDelayMS), "chat and positions: longest one-way delay of 95 % of the packets, and of messages")
	f.StringVar(&t.picture, "picture", unit.FormatBytes(int64(d.PictureBytes)), "pictures: size of one")
	f.DurationVar(&t.pictureTime, "picture-time", milliseconds(1e3*d.PictureSeconds), "pictures: longest time of one")
	f.StringVar(&t.file, "file", unit.FormatBytes(int64(d.FileBytes)), "files: size of one")
	f.DurationVar(&t.fileTime, "file-time", milliseconds(1e3*d.FileSeconds), "files: longest time of one")
}

// readFile is the thresholds of the file; none: nothing is set.
func (t *thresholdFlags) readFile() (*linktrialv1.MeasureThresholds, error) {
	out := &linktrialv1.MeasureThresholds{}
	if t.from == "" {
		return out, nil
	}
	text, err := inputfile.Read(t.from, yamldoc.MaxText)
	if err != nil {
		return nil, fmt.Errorf("--thresholds: %w", err)
	}
	given, err := measure.ReadThresholds(t.from, text)
	if err != nil {
		return nil, err
	}
	for key, into := range map[string]**float64{
		"voice_mos": &out.VoiceMos, "voice_delay": &out.VoiceDelayMs, "chat_loss": &out.ChatLoss, "chat_delay": &out.ChatDelayMs,
		"picture": &out.PictureBytes, "picture_time": &out.PictureSeconds, "file": &out.FileBytes, "file_time": &out.FileSeconds,
	} {
		if x, ok := given[key]; ok {
			*into = &x
		}
	}
	return out, nil
}

// read is the thresholds that were given.
func (t *thresholdFlags) read(cmd *cobra.Command) (*linktrialv1.MeasureThresholds, error) {
	out, err := t.readFile()
	if err != nil {
		return nil, err
	}
	set := func(name string, into **float64, value float64) {
		if cmd.Flags().Changed(name) {
			*into = &value
		}
	}
	set("voice-mos", &out.VoiceMos, t.mos)
	set("voice-delay", &out.VoiceDelayMs, 1e3*t.voiceDelay.Seconds())
	set("chat-loss", &out.ChatLoss, t.loss)
	set("chat-delay", &out.ChatDelayMs, 1e3*t.chatDelay.Seconds())
	set("picture-time", &out.PictureSeconds, t.pictureTime.Seconds())
	set("file-time", &out.FileSeconds, t.fileTime.Seconds())
	for name, x := range map[string]struct {
		text string
		into **float64
	}{"picture": {t.picture, &out.PictureBytes}, "file": {t.file, &out.FileBytes}} {
		bytes, err := unit.Bytes(x.text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", name, err)
		}
		set(name, x.into, float64(bytes))
	}
	return out, nil
}
