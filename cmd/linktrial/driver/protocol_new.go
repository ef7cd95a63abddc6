package driver

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"linktrial/protocols/templates"
)

func newProtocolNew() *cobra.Command {
	var language, parent string
	cmd := &cobra.Command{
		Use:   "new NAME --language LANGUAGE",
		Short: "Write the folder of a new driver that keeps the driver contract",
		Long: `New writes a folder with a complete driver of TCP, which passes the conformance suite.
One file in it is the protocol, to be replaced by another one; the others are what the
driver contract (docs/driver-contract.md) asks of every driver. It builds without a network.`,
		Example: `  linktrial protocol new myproto --language python
  linktrial protocol new myproto --language go --dir ~/drivers`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, l, err := templates.Write(parent, args[0], language)
			if err != nil {
				return err
			}
			shown := dir
			if !strings.ContainsRune(shown, '/') {
				shown = "./" + shown
			}
			fmt.Printf("%s has a driver of TCP; %s is the file to replace by your protocol. Then:\n", shown, l.Protocol)
			if l.Build != "" {
				fmt.Printf("  (cd %s && %s)\n", shown, l.Build)
			}
			fmt.Printf("  linktrial protocol check %s\n  linktrial --drivers %s protocol list\n", shown, parent)
			return nil
		},
	}
	cmd.Flags().StringVar(&language, "language", "", strings.Join(templates.Names(), ", "))
	cmd.Flags().StringVar(&parent, "dir", ".", "the folder to write the driver's folder into")
	_ = cmd.MarkFlagRequired("language") // the flag is there
	return cmd
}
