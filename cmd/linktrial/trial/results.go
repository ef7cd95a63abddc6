package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
)

// exportFormats are the formats of every campaign. [moreFormats] adds to them.
var exportFormats = []string{"csv", "trials-csv", "samples-csv", "channels-csv", "telemetry-csv", "readings-csv", "probes-csv", "breaches-csv", "json", "markdown", "latex", "svg", "cdf-svg"}

// resultsFormats is for --help; the orchestrator checks the format.
const resultsFormats = "table, csv, trials-csv, samples-csv, channels-csv, telemetry-csv, readings-csv, probes-csv, breaches-csv, json, markdown, latex, svg, cdf-svg, delays-svg, sweep, sweep-svg, " +
	"sequence-svg (of an iteration: sequence-svg:3), against, against-csv, against-json, against-markdown, " +
	"or of several campaigns differences, differences-csv, differences-markdown"

func newResults(s *setting.Settings) *cobra.Command {
	var out, against string
	q := &linktrialv1.ResultsRequest{}
	cmd := &cobra.Command{
		Use:     "results [RUN|CAMPAIGN...]",
		GroupID: setting.GroupResults,
		Short:   "Print or export results (default: of the newest campaign)",
		Long: `Print or export the results of runs or campaigns, which the beginnings of their
identities name. Several are compared: side by side, with the same statistics, and
with the same scales in figures. Where no orchestrator runs, one is started on the
data folder for as long as the command lasts.`,
		Example: `  linktrial results
  linktrial results m4t7xk2p-1 --format markdown
  linktrial results m4t7xk2p h8w3rnbz            # two campaigns, side by side
  linktrial results m4t7xk2p h8w3rnbz --format differences    # and the second against the first
  linktrial results m4t7xk2p --out results       # all formats, as files
  linktrial results --against published`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if against != "" {
				format, err := againstFormat(against, q.Format)
				if err != nil {
					return err
				}
				q.Format = format
			}
			if out != "" { // before the orchestrator may be started and asked
				if err := Writable(out); err != nil {
					return err
				}
			}
			o, err := openOrchestrator(ctx, s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return err
			}
			defer o.close()
			if len(args) > 0 {
				q.RunId, q.MoreIds = args[0], args[1:]
			}
			if out == "" {
				res, err := o.client.Results(ctx, connect.NewRequest(q))
				if err != nil {
					return client.Error(o.base, err)
				}
				_, err = os.Stdout.Write(res.Msg.Content)
				return err
			}
			var formats []string // all
			if cmd.Flags().Changed("format") || against != "" {
				formats = []string{q.Format}
			}
			files, err := Export(ctx, o.base, o.client, q, out, formats)
			if err != nil {
				return err
			}
			fmt.Println(strings.Join(files, "\n"))
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Format, "format", "table", resultsFormats)
	f.StringVar(&against, "against", "", "published: compare with the figures of the paper, and list what deviates")
	f.StringVar(&q.Reference, "reference", "", "treatment that the others are compared with (default: the first of each run)")
	f.StringVar(&q.Axis, "axis", "", "of sweep and sweep-svg: the axis to draw over (default: as the published figures have it)")
	f.StringVar(&q.Metric, "metric", "", "of sweep and sweep-svg: throughput, normalised, share-of-ideal, share-of-coded-bound, gain or timeouts (default: as the published figures have it)")
	f.StringVar(&out, "out", "", "write files into this folder instead of printing: all formats that apply to the results, or the one of --format")
	return cmd
}

// againstFormat returns the format of the comparison with published figures that
// belongs to a format of results.
func againstFormat(against, format string) (string, error) {
	if against != "published" {
		return "", fmt.Errorf("--against %q, expected published", against)
	}
	f := map[string]string{"table": "against", "csv": "against-csv", "json": "against-json", "markdown": "against-markdown"}[format]
	if f == "" {
		return "", fmt.Errorf("--format %q, expected table, csv, json or markdown with --against", format)
	}
	return f, nil
}

// Export writes results into a folder and returns the names of the files. Without
// formats it writes all that apply to the results.
func Export(ctx context.Context, base string, c linktrialv1connect.OperatorServiceClient, q *linktrialv1.ResultsRequest, dir string, formats []string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	all := formats == nil
	if all {
		formats = exportFormats
	}
	var files []string
	var campaigns []string
	export := func(format string) error {
		one := proto.CloneOf(q)
		one.Format = format
		res, err := c.Results(ctx, connect.NewRequest(one))
		if err != nil {
			return err
		}
		campaigns = strings.Split(res.Msg.CampaignId, ", ")
		path := filepath.Join(dir, filepath.Base(res.Msg.FileName))
		if err := os.WriteFile(path+".new", res.Msg.Content, 0o644); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
		files = append(files, path)
		return nil
	}
	for _, format := range formats {
		if err := export(format); err != nil {
			return files, client.Error(base, err)
		}
	}
	if !all {
		return files, nil
	}
	more, err := moreFormats(ctx, base, campaigns)
	if err != nil {
		return files, err
	}
	for _, format := range more {
		if err := export(format); err != nil && (!slices.Contains(mayBeMissing, format) || connect.CodeOf(err) != connect.CodeNotFound) {
			return files, client.Error(base, err)
		}
	}
	return files, nil
}

// mayBeMissing are formats that are not found for some campaigns: those in which no
// trial has started, and those without probes.
var mayBeMissing = []string{"sequence-svg", "delays-svg"}

// moreFormats returns the formats that only some campaigns have: those with sweeps,
// those with published figures, and several campaigns at once.
func moreFormats(ctx context.Context, base string, campaigns []string) ([]string, error) {
	c := linktrialv1connect.NewResultServiceClient(client.HTTP(), base, client.Options())
	res, err := c.ListCampaigns(ctx, connect.NewRequest(&linktrialv1.ListCampaignsRequest{Ids: campaigns}))
	if err != nil {
		return nil, client.Error(base, err)
	}
	out := slices.Clone(mayBeMissing)
	has := func(what func(*linktrialv1.Campaign) bool) bool { return slices.ContainsFunc(res.Msg.Campaigns, what) }
	if has((*linktrialv1.Campaign).GetSweeps) {
		out = append(out, "sweep", "sweep-svg")
	}
	if has((*linktrialv1.Campaign).GetPublished) {
		out = append(out, "against", "against-csv", "against-json", "against-markdown")
	}
	if len(campaigns) > 1 {
		out = append(out, "differences", "differences-csv", "differences-markdown")
	}
	return out, nil
}
