package results

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"

	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/rpc/results/resultsdb"
	"linktrial/orchestrator/store"
)

// channelsCSV is how the channels of emulated radios changed during each attempt.
const channelsCSV = "channels-csv"

var channelsHeader = []string{"run", "trial", "attempt", "from", "to", "step_s", "at_s", "loss", "bit_error_rate", "rate_bps", "delay_ms"}

// channelsPage is of how many trials the histories are in memory at a time.
const channelsPage = 50

// writeChannels writes every moment of every history.
func writeChannels(ctx context.Context, st *store.Store, runs []store.RunHeadsRow, leave leftOut, out *output) error {
	w := render.NewCSV(out)
	if err := w.Write(channelsHeader); err != nil {
		return err
	}
	total, ended := 0, 0
	for i := range runs {
		total += int(runs[i].Trials)
	}
	for i := range runs {
		id := runs[i].ID
		gone, err := leave.trials(ctx, st, id)
		if err != nil {
			return err
		}
		for first := int32(0); first < runs[i].Trials; first += channelsPage {
			rows, err := resultsdb.New(st).ChannelsOfRun(ctx, resultsdb.ChannelsOfRunParams{RunID: id, First: first, Trials: channelsPage})
			if err != nil {
				return fmt.Errorf("channels of run %s: %w", id, err)
			}
			for k := range rows {
				if gone[rows[k].Trial] {
					continue
				}
				if err := writeChannel(w, id, &rows[k]); err != nil {
					return err
				}
			}
			ended += int(min(channelsPage, runs[i].Trials-first))
			if err := out.share(float64(ended) / float64(total)); err != nil {
				return err
			}
		}
	}
	w.Flush()
	return w.Error()
}

// writeChannel writes the histories of an attempt; a value that is 0, or the link's own,
// throughout is left empty.
func writeChannel(w *csv.Writer, run string, row *resultsdb.ChannelsOfRunRow) error {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	at := func(list []float64, i int) string {
		if i >= len(list) {
			return ""
		}
		return number(list[i])
	}
	var histories []radiocontrol.ChannelHistory
	if err := json.Unmarshal(row.Channels, &histories); err != nil {
		return fmt.Errorf("channels of run %s, trial %d, attempt %d: %w", run, row.Trial, row.Attempt, err)
	}
	for _, h := range histories {
		for i, us := range h.AtUS {
			delay := ""
			if i < len(h.DelayUS) {
				delay = number(float64(h.DelayUS[i]) / 1e3)
			}
			if err := w.Write([]string{run, strconv.Itoa(int(row.Trial)), strconv.Itoa(int(row.Attempt)), string(h.From), string(h.To), number(h.Step.Seconds()),
				number(float64(us) / 1e6), at(h.Loss, i), at(h.BitErrorRate, i), at(h.RateBitsPerSecond, i), delay}); err != nil {
				return err
			}
		}
	}
	return nil
}
