package trial

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"linktrial/internal/yamlschema"
)

// newSchema prints the schema of the documents that a group of commands is about; check is
// the command that knows what a schema cannot say.
func newSchema(group, documents, check string, of *yamlschema.Document) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of " + documents + ", for editors",
		Long: fmt.Sprintf(`Schema prints what %s may hold as JSON Schema 2020-12. An editor that knows it completes
keys, explains them, and marks what is wrong as you type. What names exist, and what two keys say
together, '%s' knows alone.

An editor with the YAML language server takes the schema from the first line of a file:

  # yaml-language-server: $schema=%s.schema.json`, documents, check, of.Name),
		Example: fmt.Sprintf("  linktrial %s schema > %s.schema.json", group, of.Name),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(of.JSONSchema())
		},
	}
}
