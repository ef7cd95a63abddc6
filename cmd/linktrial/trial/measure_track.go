package trial

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/atomicfile"
	"linktrial/internal/backoff"
	"linktrial/orchestrator/measure"
)

// track measures small packets and voice again and again, by the capacities of a campaign,
// until it is interrupted, and writes the series.
func (m *measuring) track(cmd *cobra.Command, campaign string, t *linktrialv1.MeasureThresholds) error {
	quiet := *m
	quiet.quiet = true
	link := &linktrialv1.LinkChoice{Search: campaign, Track: true}
	var points []measure.TrackPoint
	var failed error
	for ctx := cmd.Context(); ctx.Err() == nil; {
		next := time.Now().Add(m.every)
		one, err := quiet.run(ctx, link)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			failed = err
			break
		}
		res, err := m.measure.GetMeasurement(ctx, connect.NewRequest(&linktrialv1.GetMeasurementRequest{CampaignId: one, Thresholds: t}))
		if err != nil {
			failed = client.Error(m.base, err)
			break
		}
		points = append(points, pointOf(res.Msg))
		fmt.Fprintln(terminal.Escaped(cmd.OutOrStdout()), trackLine(res.Msg))
		backoff.Sleep(ctx, time.Until(next))
	}
	if m.kml == "" {
		return failed
	}
	text := measure.TrackKML(points)
	if text == nil {
		return errors.Join(failed, fmt.Errorf("--kml %s: no position is known of any of %d measurements", m.kml, len(points)))
	}
	return errors.Join(failed, atomicfile.Write(m.kml, text, 0o644))
}

func pointOf(m *linktrialv1.GetMeasurementResponse) measure.TrackPoint {
	p := measure.TrackPoint{Campaign: m.CampaignId, At: m.Started.AsTime()}
	for _, u := range m.Uses {
		p.Uses = append(p.Uses, measure.Use{Name: u.Name, Outcome: measure.Outcome(u.Outcome)})
	}
	for _, x := range m.Positions {
		p.Positions = append(p.Positions, measure.Position{Role: x.Role, Latitude: x.Latitude, Longitude: x.Longitude})
	}
	return p
}

// trackLine is one measurement of a series: outcomes, then delay and loss of both ways.
func trackLine(m *linktrialv1.GetMeasurementResponse) string {
	parts := []string{m.Started.AsTime().UTC().Format(time.TimeOnly + " UTC")}
	for _, u := range m.Uses {
		parts = append(parts, u.Name+" "+strings.ToUpper(u.Outcome))
	}
	for _, metric := range []string{"delay, median", "loss"} {
		var ways []string
		for _, v := range m.Values {
			if v.Metric == metric && strings.HasPrefix(v.Group, "small packets") {
				ways = append(ways, v.Text)
			}
		}
		if len(ways) > 0 {
			parts = append(parts, metric+" "+strings.Join(ways, " / "))
		}
	}
	return strings.Join(parts, "  ")
}

// checkEvery refuses what a series cannot be made with.
func checkEvery(cmd *cobra.Command, every time.Duration) error {
	if !cmd.Flags().Changed("every") {
		return nil
	}
	if every < time.Second || every > 24*time.Hour {
		return fmt.Errorf("--every %s: expected 1s to 24h", every)
	}
	return nil
}
