package trial

import (
	"context"
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
)

// track measures small packets and voice again and again, by the capacities of a campaign,
// until it is interrupted, and writes the series.
func (m *measuring) track(cmd *cobra.Command, campaign string, t *linktrialv1.MeasureThresholds) error {
	quiet := *m
	quiet.quiet = true
	link := &linktrialv1.LinkChoice{Search: campaign, Track: true}
	first, made := "", 0
	var failed error
	for ctx := cmd.Context(); ctx.Err() == nil; {
		next := time.Now().Add(m.every)
		one, err := quiet.run(ctx, link)
		if first == "" {
			first = one
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			failed = err
			break
		}
		made++
		res, err := m.measure.GetMeasurement(ctx, connect.NewRequest(&linktrialv1.GetMeasurementRequest{CampaignId: one, Thresholds: t}))
		if err != nil {
			failed = client.Error(m.base, err)
			break
		}
		fmt.Fprintln(terminal.Escaped(cmd.OutOrStdout()), trackLine(res.Msg))
		backoff.Sleep(ctx, time.Until(next))
	}
	if m.kml == "" && m.csv == "" || first == "" {
		return failed
	}
	return errors.Join(failed, m.writeTrack(cmd, &linktrialv1.GetSeriesRequest{CampaignId: campaign, Thresholds: t, First: first}, made))
}

// writeTrack writes the files of a series, also after an interruption.
func (m *measuring) writeTrack(cmd *cobra.Command, of *linktrialv1.GetSeriesRequest, made int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), abortWithin)
	defer cancel()
	res, err := m.measure.GetSeries(ctx, connect.NewRequest(of))
	if err != nil {
		return client.Error(m.base, err)
	}
	if m.csv != "" {
		if err := atomicfile.Write(m.csv, []byte(res.Msg.Csv), 0o644); err != nil {
			return err
		}
	}
	switch {
	case m.kml == "":
		return nil
	case res.Msg.Kml == "":
		return fmt.Errorf("--kml %s: no position is known of any of %d measurements", m.kml, made)
	}
	return atomicfile.Write(m.kml, []byte(res.Msg.Kml), 0o644)
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
	if m.DistanceMetres != nil {
		parts = append(parts, fmt.Sprintf("%.0f m", *m.DistanceMetres))
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
