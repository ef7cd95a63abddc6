package trial

import (
	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/radio"
	"linktrial/orchestrator/catalog"
)

func newProfileSave(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "save FILE",
		Short:   "Save a radio profile at the orchestrator, for plans to use",
		Example: `  linktrial profiles save own-hf.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return saveText(args[0], "radio", func(file string, text []byte) (name, title string, err error) {
				p, err := radio.ReadProfile(file, text, catalog.NoFurtherFiles)
				if err != nil {
					return "", "", err
				}
				return p.Name, p.Title, nil
			}, func(name string, text []byte) error {
				_, err := newCatalogClient(s.Orchestrator).SaveProfile(cmd.Context(), connect.NewRequest(&linktrialv1.SaveProfileRequest{Name: name, Text: text}))
				return client.Error(s.Orchestrator, err)
			})
		},
	}
}

func newProfileDelete(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a saved radio profile that no plan, topology or node uses",
		Example: `  linktrial profiles delete own-hf`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := newCatalogClient(s.Orchestrator).DeleteProfile(cmd.Context(), connect.NewRequest(&linktrialv1.DeleteProfileRequest{Name: args[0]}))
			return client.Error(s.Orchestrator, err)
		},
	}
}
