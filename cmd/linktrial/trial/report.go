package trial

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

func newReport(s *setting.Settings) *cobra.Command {
	var out string
	q := &linktrialv1.ResultsRequest{}
	cmd := &cobra.Command{
		Use:     "report [RUN|CAMPAIGN...]",
		GroupID: setting.GroupResults,
		Short:   "Write a report of results as one document, HTML or PDF (default: of the newest campaign)",
		Long: `Write a report of runs or campaigns, which the beginnings of their identities name,
for people who were not there: what the trials decide, under which conditions they were
made, and every trial (docs/report.md). Several campaigns are in one report, beside each
other. The same results give the same file, byte for byte.

HTML is one page that needs no network, for a screen and for paper. Where no orchestrator
runs, one is started on the data folder for as long as the command lasts.`,
		Example: `  linktrial report
  linktrial report m4t7xk2p --out report.pdf
  linktrial report m4t7xk2p h8w3rnbz --out both.html    # two campaigns in one report
  linktrial report m4t7xk2p --leave-out udt,sctp --reference haul
  linktrial report words m4t7xk2p --show                # your own words in it`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			format, err := documentFormat(out)
			if err != nil {
				return err
			}
			if err := fileWritable(out); err != nil { // before the orchestrator may be started and asked
				return err
			}
			o, err := openOrchestrator(ctx, s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return err
			}
			defer o.close()
			if q.Format = format; len(args) > 0 {
				q.RunId, q.MoreIds = args[0], args[1:]
			}
			path, err := exportAs(ctx, o.base, o.client, q, func(head *linktrialv1.ResultsResponse) string {
				if out != "" {
					return out
				}
				return reportName(head, args)
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), terminal.Printable(path))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "the file to write, .html or .pdf (default: report-CAMPAIGN.html in this folder)")
	f.StringVar(&q.Reference, "reference", "", "treatment that the others are compared with (default: the first of each run)")
	f.StringSliceVar(&q.LeaveOut, "leave-out", nil, "treatments that the report does not have, separated by commas; statistics and conclusions stay those of all")
	cmd.AddCommand(newReportWords(s))
	return cmd
}

// documentFormat is the format of a report by the ending of its file.
func documentFormat(path string) (string, error) {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".html":
		return "report", nil
	case ".pdf":
		return "report-pdf", nil
	case "":
		if path == "" {
			return "report", nil
		}
	}
	return "", fmt.Errorf("--out %q: expected a file whose name ends in .html or .pdf", path)
}

// fileWritable reports why a file cannot be written; empty: one in this folder. Its folder
// must exist.
func fileWritable(path string) error {
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err != nil {
		return fmt.Errorf("--out %s: %w", path, err)
	} else if !st.IsDir() {
		return fmt.Errorf("--out %s: %s is no folder", path, dir)
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return fmt.Errorf("--out %s is a folder, expected a file", path)
	}
	return Writable(dir)
}

// namedInFile bounds how many campaigns or runs the name of a report has.
const namedInFile = 3

// reportName is the name of a report of these results: with its campaigns, or its runs where
// each identity is of a run.
func reportName(head *linktrialv1.ResultsResponse, ids []string) string {
	campaigns := strings.Split(head.CampaignId, ", ") // as report.Merge joins them
	names := campaigns
	ofRun := func(id string) bool {
		return slices.ContainsFunc(campaigns, func(c string) bool { return strings.HasPrefix(id, c+"-") })
	}
	if len(ids) > 0 && !slices.ContainsFunc(ids, func(id string) bool { return !ofRun(id) }) {
		names = head.RunIds
	}
	if n := len(names); n > namedInFile {
		names = []string{names[0], fmt.Sprintf("and-%d-more", n-1)}
	}
	return "report-" + strings.Map(inFileName, strings.Join(names, "-")) + ".html"
}

// inFileName replaces what is in no identity: the orchestrator's answer names no folder.
func inFileName(r rune) rune {
	if r < 128 && (r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
		return r
	}
	return '-'
}
