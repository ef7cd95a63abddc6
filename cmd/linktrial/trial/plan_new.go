package trial

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/yamldoc"
	"linktrial/orchestrator/plan"
)

func newPlanNew(s *setting.Settings) *cobra.Command {
	var v plan.TemplateValues
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a new plan, in which every key is explained",
		Long: `New writes NAME.yaml: a plan that runs as it is, with the keys that most plans have, and all
others as comments with what they mean and an example. A file of that name is kept. Where NAME
ends in .yaml, it is the path of the file.`,
		Example: `  linktrial plan new first
  linktrial plan new river --radio prc-117g-anw2c --topology vip-lot --protocols tcp,haul,sctp`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, name := planFile(args[0])
			text := plan.Template(name, v)
			if err := writeNew(cmd, s, file, text); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is written. Then:\n  linktrial plan check %s\n  linktrial rehearse %s\n", file, file, file)
			return nil
		},
	}
	cmd.Flags().StringVar(&v.Radio, "radio", "", "radio profile of the plan ('linktrial profiles')")
	cmd.Flags().StringVar(&v.Topology, "topology", "", "topology of the plan ('linktrial topology list')")
	cmd.Flags().StringSliceVar(&v.Protocols, "protocols", nil, "drivers to compare, by name ('linktrial protocol list')")
	return cmd
}

// planFile is the file of a new plan and the name of the plan in it.
func planFile(arg string) (file, name string) {
	file = arg
	if !strings.HasSuffix(file, ".yaml") && !strings.HasSuffix(file, ".yml") {
		file += ".yaml"
	}
	name = file[strings.LastIndexByte(file, '/')+1:]
	return file, name[:strings.LastIndexByte(name, '.')]
}

// writeNew writes a plan into a file that must not exist, once it is known to be right.
func writeNew(cmd *cobra.Command, s *setting.Settings, file, text string) error {
	var problems yamldoc.Problems
	if _, _, err := CompileText(cmd.Context(), s, file, []byte(text)); errors.As(err, &problems) {
		messages := make([]string, len(problems))
		for i, p := range problems {
			messages[i] = p.Message
		}
		return fmt.Errorf("%s was not written:\n  %s", file, strings.Join(messages, "\n  "))
	} else if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists, and is kept; name another file, or remove it first", file)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
