package trial

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/report"
)

// importedFile is the exported file of a bag that is imported.
const importedFile = "results.json"

func newEvidenceImport(s *setting.Settings) *cobra.Command {
	var key, by, origin string
	cmd := &cobra.Command{
		Use:   "import BAG",
		Short: "Check a bag and import its results, to compare them with one's own",
		Long: `Import checks a bag of evidence as 'linktrial evidence verify --no-rebuild' does, and
imports its results.json as 'linktrial import' does. A bag with findings is refused. The
origin of the import says that it is from evidence, and which key signed that; whether the
key is known here is said, too.`,
		Example: `  linktrial evidence import trial.zip --origin "company B, second day"
  linktrial evidence import trial.zip --key their-keys`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			known, err := knownHere(key)
			if err != nil {
				return err
			}
			shown := terminal.NewLateStages(os.Stderr, progressAfter)
			bag, v, err := verifyBag(cmd.Context(), args[0], known, shown.Stage)
			shown.Finish()
			if err != nil {
				return err
			}
			defer func() { _ = bag.Close() }() // only read
			out := terminal.Escaped(cmd.OutOrStdout())
			if n := v.Findings(); n > 0 {
				if err := printChecks(out, asAudit(v.Checks)); err != nil {
					return err
				}
				return fmt.Errorf("%s is not imported: the check of it has %s", bag.Name(), terminal.Count(n, "finding"))
			}
			content, err := importedResults(bag)
			if err != nil {
				return err
			}
			req := &linktrialv1.ImportCampaignRequest{Content: content, FileName: importedFile, By: cmp.Or(by, client.UserName()), Origin: evidenceOrigin(origin, v)}
			res, err := newResultClient(s.Orchestrator).ImportCampaign(cmd.Context(), connect.NewRequest(req))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			x := res.Msg.Imported
			fmt.Fprintf(out, "Campaign %s (%s) is imported: %s, %s. %s\n", x.Imported.CampaignId, x.Plan, terminal.Count(int(x.Runs), "run"), terminal.Count(int(x.Trials), "trial"), v.Means[0])
			return nil
		},
	}
	keyFlag(cmd, &key)
	cmd.Flags().StringVar(&by, "by", "", "who imports it, which is recorded unless you are logged in (default: the user of this machine)")
	cmd.Flags().StringVar(&origin, "origin", "", "whose results these are, for people; all outputs have it")
	return cmd
}

// importedResults reads the results that are imported: of the campaign whose evidence the bag
// is.
func importedResults(bag *evidence.Bag) ([]byte, error) {
	name := path.Join(evidence.Results, importedFile)
	if !slices.ContainsFunc(bag.Index.Exports, func(x evidence.Export) bool { return x.File == importedFile && x.Run == "" }) {
		return nil, fmt.Errorf("%s: %s: the bag does not have it, which is what is imported", bag.Name(), name)
	}
	content, err := bag.Read(name, report.MaxImport)
	if err != nil {
		return nil, err
	}
	var of struct { // the orchestrator reads all of it
		Dataset struct {
			Campaign string `json:"campaign"`
		} `json:"dataset"`
	}
	if err := json.Unmarshal(content, &of); err != nil {
		return nil, fmt.Errorf("%s: %s: it is no JSON export of results: %w", bag.Name(), name, err)
	}
	if of.Dataset.Campaign != bag.Index.Campaign {
		return nil, fmt.Errorf("%s: %s: it has the results of campaign %.64q, and the bag is the evidence of campaign %s", bag.Name(), name, of.Dataset.Campaign, bag.Index.Campaign)
	}
	return content, nil
}

// evidenceOrigin is where imported results come from, in the words of who imports them and
// with the key that signed them.
func evidenceOrigin(given string, v *evidence.Verdict) string {
	from := "from evidence that is not signed"
	if x := v.SignedBy(); x != nil {
		if from = "from evidence, signed by " + x.Key; !x.Known {
			from += ", not known here"
		}
	}
	if given != "" {
		return given + " (" + from + ")"
	}
	return from
}
