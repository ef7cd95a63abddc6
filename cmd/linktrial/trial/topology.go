package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/internal/inputfile"
	"linktrial/internal/radio"
	"linktrial/internal/yamldoc"
)

func newCatalogClient(base string) linktrialv1connect.CatalogServiceClient {
	return linktrialv1connect.NewCatalogServiceClient(client.HTTP(), base, connect.WithGRPC())
}

func newTopology(s *setting.Settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "topology",
		GroupID: setting.GroupNodes,
		Short:   "List, show, save and delete topologies at the orchestrator",
	}
	cmd.AddCommand(newTopologyList(s), newTopologyShow(s), newTopologySave(s), newTopologyDelete(s),
		newSchema("topology", "topologies", "linktrial topology save", radio.TopologyLanguage))
	return cmd
}

func newTopologyList(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the topologies: saved ones, and those that come with Linktrial",
		Example: `  linktrial topology list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := client.New(s.Orchestrator).ListProfiles(cmd.Context(), connect.NewRequest(&linktrialv1.ListProfilesRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			var all []radio.Topology
			for _, text := range res.Msg.Topologies {
				var t radio.Topology
				if err := json.Unmarshal([]byte(text), &t); err != nil {
					return fmt.Errorf("topology in the answer of the orchestrator: %w", err)
				}
				all = append(all, t)
			}
			return terminal.Columns("TOPOLOGY\tFROM\tNODES\tTITLE", func(w io.Writer) {
				for _, t := range all {
					from, nodes := "saved", []string{}
					if slices.Contains(res.Msg.ShippedTopologies, t.Name) {
						from = "shipped"
					}
					for _, st := range t.Stations {
						nodes = append(nodes, string(st.Role))
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, from, strings.Join(nodes, ", "), t.Title)
				}
			})
		},
	}
}

func newTopologyShow(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Print the text of a topology",
		Example: `  linktrial topology show vip-lot > meadow.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := newCatalogClient(s.Orchestrator).GetSource(cmd.Context(), connect.NewRequest(&linktrialv1.GetSourceRequest{Kind: "topology", Name: args[0]}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			_, err = os.Stdout.Write(res.Msg.Text)
			return err
		},
	}
}

func newTopologySave(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "save FILE",
		Short:   "Save a topology at the orchestrator, for plans to use",
		Example: `  linktrial topology save meadow.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saveText(args[0], "topology", func(file string, text []byte) (name, title string, err error) {
				t, err := radio.ParseTopology(file, text)
				if err != nil {
					return "", "", err
				}
				return t.Name, t.Title, nil
			}, func(name string, text []byte) error {
				_, err := newCatalogClient(s.Orchestrator).SaveTopology(cmd.Context(), connect.NewRequest(&linktrialv1.SaveTopologyRequest{Name: name, Text: text}))
				return client.Error(s.Orchestrator, err)
			})
		},
	}
}

// saveText reads a file, which read parses here, so that problems name the file by its own
// path, and saves it at the orchestrator.
func saveText(file, kind string, read func(file string, text []byte) (name, title string, err error), save func(name string, text []byte) error) error {
	text, err := inputfile.Read(file, yamldoc.MaxText)
	if err != nil {
		return err
	}
	name, title, err := read(file, text)
	var problems yamldoc.Problems
	if errors.As(err, &problems) {
		fmt.Fprintln(os.Stderr, problems.Error())
		return fmt.Errorf("%s is refused: %s", file, terminal.Count(problems.Number(), "problem"))
	}
	if err != nil {
		return err
	}
	if base := strings.TrimSuffix(filepath.Base(file), ".yaml"); name != base {
		return fmt.Errorf("%s holds the %s %q: name the file %s.yaml, as a %s has the name of its file", file, kind, name, name, kind)
	}
	if err := save(name, text); err != nil {
		return err
	}
	fmt.Printf("%s is saved: %s\n", name, title)
	return nil
}

func newTopologyDelete(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a saved topology",
		Example: `  linktrial topology delete meadow`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := newCatalogClient(s.Orchestrator).DeleteTopology(cmd.Context(), connect.NewRequest(&linktrialv1.DeleteTopologyRequest{Name: args[0]}))
			return client.Error(s.Orchestrator, err)
		},
	}
}
