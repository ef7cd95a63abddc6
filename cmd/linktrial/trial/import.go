package trial

import (
	"cmp"
	"fmt"
	"io"
	"os/user"
	"path/filepath"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/inputfile"
	"linktrial/orchestrator/report"
)

func newResultClient(base string) linktrialv1connect.ResultServiceClient {
	return linktrialv1connect.NewResultServiceClient(client.HTTP(), base, connect.WithGRPC())
}

func newImport(s *setting.Settings) *cobra.Command {
	var by, origin string
	cmd := &cobra.Command{
		Use:     "import FILE",
		GroupID: setting.GroupResults,
		Short:   "Import the results of another orchestrator's campaign, to compare them with one's own",
		Long: `Import reads results.json, the JSON export of a campaign that another orchestrator has
measured. 'linktrial results' takes the campaign's identity afterwards, also beside
campaigns of this orchestrator, and says that it was imported. A file whose values do not
follow from its attempts, or that is incomplete, is refused as a whole, and so is a
campaign that is here already.`,
		Example: `  linktrial import their4xq/results.json --origin "company B, second day"
  linktrial results mine7k2p their4xq --format differences`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			content, err := inputfile.Read(args[0], report.MaxImport)
			if err != nil {
				return err
			}
			if u, err := user.Current(); err == nil {
				by = cmp.Or(by, u.Username)
			}
			res, err := newResultClient(s.Orchestrator).ImportCampaign(cmd.Context(), connect.NewRequest(&linktrialv1.ImportCampaignRequest{Content: content, FileName: filepath.Base(args[0]), By: by, Origin: origin}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			x := res.Msg.Imported
			fmt.Printf("Campaign %s (%s) is imported: %s, %s, SHA-256 %s\n", x.Imported.CampaignId, terminal.Printable(x.Plan), terminal.Count(int(x.Runs), "run"), terminal.Count(int(x.Trials), "trial"), x.Imported.Sha256)
			return nil
		},
	}
	cmd.Flags().StringVar(&by, "by", "", "who imports it, which is recorded unless you are logged in (default: the user of this machine)")
	cmd.Flags().StringVar(&origin, "origin", "", "whose results these are, for people; all outputs have it")
	cmd.AddCommand(newImportList(s), newImportRemove(s))
	return cmd
}

func newImportList(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List imported campaigns",
		Example: `  linktrial import list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := newResultClient(s.Orchestrator).ListImports(cmd.Context(), connect.NewRequest(&linktrialv1.ListImportsRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if len(res.Msg.Imports) == 0 {
				fmt.Println("No campaign is imported. Import one: linktrial import FILE")
				return nil
			}
			return terminal.Columns("CAMPAIGN\tPLAN\tRUNS\tTRIALS\tORIGIN\tIMPORTED\tBY\tFILE\tSHA-256", func(w io.Writer) {
				for _, x := range res.Msg.Imports {
					from := x.Imported
					fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", from.CampaignId, x.Plan, x.Runs, x.Trials, cmp.Or(from.Origin, "–"), terminal.Moment(from.At), cmp.Or(from.By, "–"), from.FileName, from.Sha256)
				}
			})
		},
	}
}

func newImportRemove(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "remove CAMPAIGN",
		Short:   "Remove an imported campaign",
		Example: `  linktrial import remove their4xq`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := newResultClient(s.Orchestrator).RemoveImport(cmd.Context(), connect.NewRequest(&linktrialv1.RemoveImportRequest{CampaignId: args[0]}))
			return client.Error(s.Orchestrator, err)
		},
	}
}
