package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/atomicfile"
	"linktrial/orchestrator/rpc/day"
)

// codeIncomplete is the exit code of 'linktrial day' where the archive is there and something
// in it is not as it should be.
const codeIncomplete = 1

func newDay(s *setting.Settings) *cobra.Command {
	var out, date, zone string
	var without bool
	cmd := &cobra.Command{
		Use:     "day --out FILE.zip",
		GroupID: setting.GroupResults,
		Short:   "Close the day: audit, export and back up what ended on it, in one archive",
		Long: `Day audits the runs of all campaigns that ended on a day, exports their results, makes a
backup of the orchestrator, and writes all of it into one archive with a README that says
what was found and what is not complete. The button "Close the day" of the overview does
the same.

A day goes from midnight to midnight in the zone, by the orchestrator's clock. The audit
has the orchestrator's store and the exported files; 'linktrial audit-run --journals' also
has the nodes' own journals (docs/audit.md).

A backup takes an admin, and has the orchestrator's secret keys: keep the archive where
nobody else can read it. --no-backup leaves it out, and takes a director.

The exit code is 0 where everything is complete and without findings, and else 1; the
archive is there in both cases. Where it could not be made, the exit code is 2.`,
		Example: `  linktrial day --out /media/usb/today.zip
  linktrial day --out monday.zip --date 2026-11-30 --zone Europe/Berlin
  linktrial day --out results.zip --no-backup`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := openOrchestrator(cmd.Context(), s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return setting.Failed{Code: 2, Err: err}
			}
			defer o.close()
			last, err := closeDay(cmd.Context(), o.base, date, zone, !without, out)
			if err != nil {
				return setting.Failed{Code: 2, Err: err}
			}
			if !printDay(terminal.Escaped(cmd.OutOrStdout()), last, out) {
				return setting.ExitCode(codeIncomplete)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "the file to write")
	f.StringVar(&date, "date", "", "the day, such as 2026-11-30 (default: today, by the orchestrator's clock)")
	f.StringVar(&zone, "zone", "UTC", "time zone from whose midnight to midnight a day goes, such as Europe/Berlin")
	f.BoolVar(&without, "no-backup", false, "leave the backup out")
	setting.Require(cmd, "out")
	return cmd
}

// closeDay has the orchestrator make the archive of a day, and writes it into a file that its
// owner alone may read.
func closeDay(ctx context.Context, base, date, zone string, backup bool, out string) (*linktrialv1.DayProgress, error) {
	file, err := atomicfile.Create(out, 0o600) // before the work: the folder may not be there
	if err != nil {
		return nil, err
	}
	defer file.Discard()
	h := client.HTTP()
	defer h.CloseIdleConnections()
	last, err := awaitDay(ctx, linktrialv1connect.NewDayServiceClient(h, base, client.Options()), date, zone, backup)
	if err != nil {
		return nil, client.Error(base, err)
	}
	if err := fetchArchive(ctx, h, base, day.DownloadPath, last.Key, file); err != nil {
		return nil, err
	}
	return last, file.Commit()
}

// awaitDay shows the progress, and returns the last message.
func awaitDay(ctx context.Context, c linktrialv1connect.DayServiceClient, date, zone string, backup bool) (*linktrialv1.DayProgress, error) {
	stages := terminal.NewLateStages(os.Stderr, showAfter)
	defer stages.Finish()
	var last *linktrialv1.DayProgress
	show := func(p *linktrialv1.DayProgress) {
		last = p
		stages.Stage("closing the day", p.Done)
	}
	if backup {
		stream, err := c.CloseDayWithBackup(ctx, connect.NewRequest(&linktrialv1.CloseDayWithBackupRequest{Date: date, Zone: zone}))
		if err != nil {
			return nil, err
		}
		defer func() { _ = stream.Close() }() // nothing was written to it
		for stream.Receive() {
			show(stream.Msg().Progress)
		}
		return ofDay(last, stream.Err())
	}
	stream, err := c.CloseDay(ctx, connect.NewRequest(&linktrialv1.CloseDayRequest{Date: date, Zone: zone}))
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // nothing was written to it
	for stream.Receive() {
		show(stream.Msg().Progress)
	}
	return ofDay(last, stream.Err())
}

func ofDay(last *linktrialv1.DayProgress, err error) (*linktrialv1.DayProgress, error) {
	if err == nil && last.GetSummary() == nil {
		err = errors.New("the orchestrator's answer ended before the archive was made")
	}
	return last, err
}

// fetchArchive reads an archive that the orchestrator has made.
func fetchArchive(ctx context.Context, h *http.Client, base, from, key string, to io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+from+"?key="+url.QueryEscape(key), http.NoBody)
	if err != nil {
		return err
	}
	res, err := h.Do(r)
	if err != nil {
		return client.Error(base, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // what there is of it is shown
		return fmt.Errorf("the archive could not be fetched: %s", terminal.Printable(strings.TrimSpace(string(text))))
	}
	if _, err := io.Copy(to, res.Body); err != nil {
		return fmt.Errorf("the archive did not arrive to its end: %w", err)
	}
	return nil
}

// printDay prints the summary, and reports whether everything is complete and without findings.
func printDay(out io.Writer, p *linktrialv1.DayProgress, file string) (well bool) {
	s := p.Summary
	fmt.Fprintf(out, "%s (%s): %s, %s\n", s.Date, s.Zone, terminal.Count(len(s.Campaigns), "campaign"), terminal.Count(runsOf(s), "run"))
	well = len(s.Incomplete) == 0
	for _, c := range s.Campaigns {
		fmt.Fprintf(out, "campaign %s (%s), %s exported\n", c.Id, c.Plan, terminal.Count(int(c.Files), "file"))
		for _, f := range c.Failures {
			fmt.Fprintf(out, "  NOT EXPORTED %s\n", f)
			well = false
		}
		for _, r := range c.Runs {
			fmt.Fprintf(out, "  run %s, %s: %s\n", r.Id, r.State, day.AuditText(r))
			for _, f := range r.First {
				fmt.Fprintf(out, "    FINDING %s\n", f)
			}
			well = well && r.Failure == "" && r.Findings == 0
		}
	}
	for _, line := range s.Incomplete {
		fmt.Fprintf(out, "not complete: %s\n", line)
	}
	switch b := s.Backup; {
	case b == nil:
	case b.Failure != "":
		fmt.Fprintf(out, "NO BACKUP: %s\n", b.Failure)
		well = false
	default:
		fmt.Fprintf(out, "backup: %d KiB, signed by this orchestrator's key. Keep the fingerprint apart from the file; a restore asks for it:\n  %s\n", (b.Bytes+1023)/1024, b.Fingerprint)
	}
	fmt.Fprintf(out, "%s: %d KiB\n", file, (p.Bytes+1023)/1024)
	if s.Backup != nil && s.Backup.Failure == "" {
		fmt.Fprintln(out, "It holds the orchestrator's secret keys: store it where nobody else can read it.")
	}
	return well
}

func runsOf(s *linktrialv1.DaySummary) (n int) {
	for _, c := range s.Campaigns {
		n += len(c.Runs)
	}
	return n
}
