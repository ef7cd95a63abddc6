package main

import (
	"strings"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
)

// usageTemplate is cobra's own, except that a command with nothing but
// subcommands has no usage line for itself.
func usageTemplate(root *cobra.Command) string {
	const runnable = "{{if .Runnable}}\n  {{.UseLine}}{{end}}"
	t := root.UsageTemplate()
	if !strings.Contains(t, runnable) {
		panic("cobra's usage template has changed")
	}
	return strings.Replace(t, runnable, `{{if and .Runnable (ne (index .Annotations "runs") "subcommands")}}`+"\n  {{.UseLine}}{{end}}", 1)
}

// requireSubcommand has every command that only has subcommands refuse an unknown
// one. Cobra itself would print the help and exit with 0. Without arguments such a
// command prints its help.
func requireSubcommand(c *cobra.Command) {
	for _, sub := range c.Commands() {
		requireSubcommand(sub)
	}
	if c.Runnable() || !c.HasSubCommands() {
		return
	}
	c.Annotations = map[string]string{"runs": "subcommands"}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return setting.UnknownCommand(cmd, args[0])
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}
