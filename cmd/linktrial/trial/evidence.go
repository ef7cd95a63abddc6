package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/atomicfile"
	"linktrial/orchestrator/rpc/packing"
)

func newEvidence(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "evidence",
		GroupID: setting.GroupResults,
		Short:   "Everything that a campaign's report rests on, signed, in one file that others can check",
		Long: `Evidence of a campaign is its plan, run sheets, journals of all nodes as they wrote them,
what people commanded and marked, results and report, in one signed file (docs/evidence.md).`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newEvidencePack(s), newEvidenceVerify(s), newEvidenceImport(s))
	return cmd
}

func newEvidencePack(s *setting.Settings) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "pack [CAMPAIGN]",
		Short: "Pack the evidence of a campaign into one signed file (default: of the newest campaign)",
		Long: `Pack writes the evidence of a campaign, which the beginning of its identity names, into a
ZIP file: a BagIt bag with RO-Crate metadata, signed by the orchestrator. Its README.txt
says how to check it without Linktrial, with sha256sum and ssh-keygen.

Tell those who get the file the fingerprint of the key, over another way: a signature
proves nothing to who does not know whose key made it. Where no orchestrator runs, one is
started on the data folder for as long as the command lasts.`,
		Example: `  linktrial evidence pack
  linktrial evidence pack m4t7xk2p --out trial.zip`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fileWritable(out); err != nil { // before the orchestrator may be started and asked
				return err
			}
			o, err := openOrchestrator(cmd.Context(), s, cmd.Flags().Changed("orchestrator"))
			if err != nil {
				return err
			}
			defer o.close()
			packed, at, err := packEvidence(cmd.Context(), o.base, strings.Join(args, ""), out)
			if err != nil {
				return err
			}
			printPacked(terminal.Escaped(cmd.OutOrStdout()), packed, at)
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the file to write (default: linktrial-CAMPAIGN-evidence.zip in this folder)")
	return cmd
}

// packEvidence has the orchestrator pack a campaign's evidence, and writes it into a file,
// whose name it returns.
func packEvidence(ctx context.Context, base, campaign, out string) (*linktrialv1.PackResponse, string, error) {
	h := client.HTTP()
	defer h.CloseIdleConnections()
	last, err := awaitPacked(ctx, linktrialv1connect.NewEvidenceServiceClient(h, base, client.Options()), campaign)
	if err != nil {
		return nil, "", client.Error(base, err)
	}
	if out == "" {
		stem := strings.TrimSuffix(filepath.Base(last.FileName), ".zip")
		out = strings.Map(inFileName, stem) + ".zip"
	}
	file, err := atomicfile.Create(out, 0o600)
	if err != nil {
		return nil, "", err
	}
	defer file.Discard()
	if err := fetchArchive(ctx, h, base, packing.DownloadPath, last.Key, file); err != nil {
		return nil, "", err
	}
	return last, out, file.Commit()
}

// awaitPacked shows the progress, and returns the last message.
func awaitPacked(ctx context.Context, c linktrialv1connect.EvidenceServiceClient, campaign string) (*linktrialv1.PackResponse, error) {
	stages := terminal.NewLateStages(os.Stderr, showAfter)
	defer stages.Finish()
	stream, err := c.Pack(ctx, connect.NewRequest(&linktrialv1.PackRequest{CampaignId: campaign}))
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }() // nothing was written to it
	var last *linktrialv1.PackResponse
	for stream.Receive() {
		last = stream.Msg()
		stages.Stage("packing the evidence", last.Done)
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if last.GetKey() == "" {
		return nil, errors.New("the orchestrator's answer ended before the evidence was packed")
	}
	return last, nil
}

// printPacked says what a bag has, what it lacks, and whose key signed it.
func printPacked(out io.Writer, p *linktrialv1.PackResponse, file string) {
	fmt.Fprintf(out, "campaign %s: %s, %s, %d of %s signed by their nodes\n", p.CampaignId, terminal.Count(int(p.Runs), "run"), terminal.Count(int(p.Files), "file"),
		p.SignedJournals, terminal.Count(int(p.Journals), "journal"))
	if !p.Complete {
		fmt.Fprintln(out, "NOT COMPLETE: a run is under way; pack it again when it has ended")
	}
	for _, m := range p.Missing {
		fmt.Fprintf(out, "missing: %s\n", m)
	}
	fmt.Fprintf(out, "signed by this orchestrator's key; give its fingerprint to others over another way than the file:\n  %s\n  %s (as ssh-keygen shows it)\n", p.Fingerprint, p.SshFingerprint)
	fmt.Fprintf(out, "%s: %d KiB\n", file, (p.Bytes+1023)/1024)
}
