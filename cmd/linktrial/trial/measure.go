package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/atomicfile"
)

// measuring is one call of 'linktrial measure'.
type measuring struct {
	base     string
	measure  linktrialv1connect.MeasureServiceClient
	operator linktrialv1connect.OperatorServiceClient
	link     *linktrialv1.LinkChoice
	limits   thresholdFlags

	quiet, dryRun  bool
	show, csv, kml string
	every          time.Duration // of a series; 0: none
}

func newMeasure(s *setting.Settings) *cobra.Command {
	m := &measuring{link: &linktrialv1.LinkChoice{}}
	cmd := &cobra.Command{
		Use:     "measure",
		GroupID: setting.GroupTrial,
		Short:   "Measure the link between the connected nodes, and say what it is good for",
		Long: `Measure tests the link between the connected client and server: the capacity of each
way, delay and loss of small packets, messages of 20 B to 10 KiB, quality of voice, and a
verified transfer of TCP and of Haul, each with delays under load. It then says for voice,
chat and positions, chat while a file is sent, pictures and files whether the link is good
enough: yes, no or undecided, each with its value and its threshold (docs/measure.md).

It says beforehand how long it takes at most: 2 minutes above 2 Mbit/s, 10 minutes at
16 kbit/s. It is a run like any other, kept by the orchestrator; where the rate of the
radio is not known, two: first the search for the capacity, then the rest. Interrupting it
aborts the run at once, and what was measured until then is kept and printed.`,
		Example: `  linktrial measure
  linktrial measure --radio transports-link     # over a lab's emulated radios
  linktrial measure --voice-mos 3.1 --file 2MiB --file-time 5m
  linktrial measure --thresholds ours.yaml
  linktrial measure --show m4t7xk2p --csv link.csv --kml link.kml
  linktrial measure --every 30s --kml walk.kml  # while somebody walks; Ctrl-C ends it
  linktrial measure --dry-run                   # the time and the plan alone`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m.base, m.operator = s.Orchestrator, client.New(s.Orchestrator)
			m.measure = linktrialv1connect.NewMeasureServiceClient(client.HTTP(), s.Orchestrator, client.Options())
			return m.do(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&m.link.Radio, "radio", "", "radio profile (default: that of the client's node; a radio without a name needs none)")
	f.StringVar(&m.link.Topology, "topology", "", "topology (default: point-to-point)")
	f.BoolVar(&m.quiet, "quiet", false, "print the page alone, and nothing while it is measured")
	f.BoolVar(&m.dryRun, "dry-run", false, "print how long it takes and the plan, and start nothing")
	f.StringVar(&m.show, "show", "", "print an earlier measurement, named by its campaign, instead of making one; an empty name is the newest")
	f.DurationVar(&m.every, "every", 0, "afterwards measure small packets and voice again and again, so often, until interrupted: a line each; --kml and --csv then have these as points")
	f.StringVar(&m.csv, "csv", "", "write values and judgements into this file")
	f.StringVar(&m.kml, "kml", "", "write positions and judgements into this file, where positions are known")
	m.limits.register(cmd)
	return cmd
}

// do is the command.
func (m *measuring) do(cmd *cobra.Command) error {
	thresholds, err := m.limits.read(cmd)
	if err == nil {
		err = checkEvery(cmd, m.every)
	}
	if err != nil {
		return err
	}
	if m.dryRun {
		return m.preview(cmd)
	}
	campaign, earlier := m.show, cmd.Flags().Changed("show")
	var stopped error
	if !earlier {
		if campaign, stopped = m.run(cmd.Context(), m.link); campaign == "" {
			return stopped
		}
	}
	shown, err := m.page(cmd, campaign, thresholds)
	switch {
	case err != nil:
		return err
	case stopped != nil:
		return stopped
	case shown.Partial && !earlier:
		return fmt.Errorf("the run did not complete: linktrial results %s", campaign)
	case m.every == 0:
		return nil
	}
	return m.track(cmd, shown.CampaignId, thresholds)
}

// preview prints what a measurement would be.
func (m *measuring) preview(cmd *cobra.Command) error {
	res, err := m.measure.PreviewMeasurement(cmd.Context(), connect.NewRequest(&linktrialv1.PreviewMeasurementRequest{Link: m.link}))
	if err != nil {
		return client.Error(m.base, err)
	}
	if res.Msg.Plan == nil {
		return errors.New(res.Msg.Refused)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), announcement(res.Msg.Plan))
	fmt.Fprint(terminal.Escaped(cmd.OutOrStdout()), res.Msg.Plan.Text)
	return nil
}

// announcement is how long a measurement takes.
func announcement(p *linktrialv1.MeasurementPlan) string {
	of := fmt.Sprintf("Measuring %s at %s", terminal.Printable(p.Radio), terminal.Printable(p.Topology))
	most := time.Duration(p.BoundSeconds * float64(time.Second)).Round(time.Second)
	if p.RestFollows {
		return fmt.Sprintf("%s: its rate is not known, so that the capacity is searched first; at most %s, about 2 minutes above 2 Mbit/s.", of, most)
	}
	return fmt.Sprintf("%s (%.4g kbit/s): at most %s.", of, p.RateBps/1e3, most)
}

// run measures the link, and returns the campaign of its newest part. The error beside a
// campaign is why it did not end.
func (m *measuring) run(ctx context.Context, link *linktrialv1.LinkChoice) (campaign string, err error) {
	for {
		res, err := m.measure.StartMeasurement(ctx, connect.NewRequest(&linktrialv1.StartMeasurementRequest{Link: link}))
		if err != nil {
			return campaign, client.Error(m.base, err)
		}
		if err := Refused(res.Msg.Plan.Radio, res.Msg.Problems); err != nil {
			return campaign, err
		}
		if !m.quiet && link.Search == "" {
			fmt.Fprintln(os.Stderr, announcement(res.Msg.Plan))
		}
		campaign = res.Msg.CampaignId
		if err := m.follow(ctx, campaign); err != nil {
			return campaign, err
		}
		if !res.Msg.Plan.RestFollows {
			return campaign, nil
		}
		link = &linktrialv1.LinkChoice{Search: campaign}
	}
}

// abortWithin bounds the call that aborts a run after an interruption.
const abortWithin = 10 * time.Second

// follow shows a campaign until it has ended. When ctx ends, it aborts the campaign, and
// waits until that has happened.
func (m *measuring) follow(ctx context.Context, campaign string) error {
	err := m.await(ctx, campaign)
	if ctx.Err() == nil {
		return err
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortWithin)
	defer cancel()
	if _, err := m.operator.AbortCampaign(late, connect.NewRequest(&linktrialv1.AbortCampaignRequest{CampaignId: campaign, Reason: "interrupted"})); err != nil {
		return fmt.Errorf("the measurement could not be aborted, and continues: linktrial run abort %s: %w", campaign, client.Error(m.base, err))
	}
	quietly := &measuring{base: m.base, operator: m.operator, quiet: true}
	if err := quietly.await(late, campaign); err != nil {
		return fmt.Errorf("the measurement is being aborted: linktrial measure --show %s", campaign)
	}
	return errors.New("the measurement was aborted")
}

// await shows a campaign until it has ended, or ctx has.
func (m *measuring) await(ctx context.Context, campaign string) error {
	if !m.quiet {
		return Follow(ctx, m.base, m.operator, campaign)
	}
	outage := client.NewOutage(m.base, func(line string) { fmt.Fprintln(os.Stderr, line) })
	ctx = client.Saying(ctx, outage)
	retry := client.Retry()
	for {
		err := followOnce(ctx, m.operator, campaign, func(*linktrialv1.WatchResponse) { retry.Reset(); outage.Over() })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return nil
		case client.Final(err):
			return client.Error(m.base, err)
		}
		outage.Failed(err)
		if !retry.Wait(ctx) {
			return ctx.Err()
		}
	}
}

// page prints a measurement, and writes its files. It does so after an interruption, too.
func (m *measuring) page(cmd *cobra.Command, campaign string, t *linktrialv1.MeasureThresholds) (*linktrialv1.GetMeasurementResponse, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), abortWithin)
	defer cancel()
	res, err := m.measure.GetMeasurement(ctx, connect.NewRequest(&linktrialv1.GetMeasurementRequest{CampaignId: campaign, Thresholds: t}))
	if err != nil {
		return nil, client.Error(m.base, err)
	}
	fmt.Fprint(terminal.Escaped(cmd.OutOrStdout()), res.Msg.Text)
	if m.every > 0 { // the files have the points of the series
		return res.Msg, nil
	}
	if m.csv != "" {
		if err := atomicfile.Write(m.csv, []byte(res.Msg.Csv), 0o644); err != nil {
			return nil, err
		}
	}
	if m.kml == "" {
		return res.Msg, nil
	}
	if res.Msg.Kml == "" {
		return nil, fmt.Errorf("--kml %s: no position is known: no telemetry source of the radio told latitude and longitude during the run", m.kml)
	}
	return res.Msg, atomicfile.Write(m.kml, []byte(res.Msg.Kml), 0o644)
}
