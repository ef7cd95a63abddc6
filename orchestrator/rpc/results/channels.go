package results

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"

	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/store"
)

// channelsCSV is how the channels of emulated radios changed during each
// attempt; no data set holds it.
const channelsCSV = "channels-csv"

var channelsHeader = []string{"run", "trial", "attempt", "from", "to", "step_s", "at_s", "loss", "bit_error_rate", "rate_bps", "delay_ms"}

// writeChannels is every moment of every history; a figure that is 0, or the
// link's own, throughout is left empty.
func writeChannels(ctx context.Context, st *store.Store, ds *report.Dataset) (render.File, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	if err := w.Write(channelsHeader); err != nil {
		return render.File{}, err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	at := func(list []float64, i int) string {
		if i >= len(list) {
			return ""
		}
		return number(list[i])
	}
	for _, r := range ds.Runs {
		rows, err := st.ChannelsOfRun(ctx, r.ID)
		if err != nil {
			return render.File{}, fmt.Errorf("channels of run %s: %w", r.ID, err)
		}
		for _, row := range rows {
			var histories []radiocontrol.ChannelHistory
			if err := json.Unmarshal(row.Channels, &histories); err != nil {
				return render.File{}, fmt.Errorf("channels of run %s, trial %d, attempt %d: %w", r.ID, row.Trial, row.Attempt, err)
			}
			for _, h := range histories {
				for i, us := range h.AtUS {
					delay := ""
					if i < len(h.DelayUS) {
						delay = number(float64(h.DelayUS[i]) / 1e3)
					}
					if err := w.Write([]string{r.ID, strconv.Itoa(int(row.Trial)), strconv.Itoa(int(row.Attempt)), string(h.From), string(h.To), number(h.Step.Seconds()),
						number(float64(us) / 1e6), at(h.Loss, i), at(h.BitErrorRate, i), at(h.RateBitsPerSecond, i), delay}); err != nil {
						return render.File{}, err
					}
				}
			}
		}
	}
	w.Flush()
	return render.File{Name: "channels.csv", MediaType: "text/csv; charset=utf-8", Content: out.Bytes()}, w.Error()
}
