package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
)

// scheduleByRule has a plan start by a rule, and prints the first starts.
func scheduleByRule(ctx context.Context, s *setting.Settings, req *linktrialv1.ScheduleRecurrenceRequest) error {
	res, err := newLibraryClient(s.Orchestrator).ScheduleRecurrence(ctx, connect.NewRequest(req))
	if err != nil {
		return client.Error(s.Orchestrator, err)
	}
	x := res.Msg.Recurrence
	fmt.Printf("%s starts %s: schedule %s\n", x.Plan, terminal.Printable(x.Rule), x.Id)
	fmt.Printf("The next starts: %s\n", moments(x.Next))
	if x.Message != "" {
		fmt.Println(terminal.Printable(x.Message))
	}
	return nil
}

func moments(times []*timestamppb.Timestamp) string {
	out := make([]string, len(times))
	for i, t := range times {
		out[i] = terminal.Moment(t)
	}
	return strings.Join(out, ", ")
}

// printRules prints the repeated schedules, and a blank line after them.
func printRules(rules []*linktrialv1.Recurrence) error {
	if len(rules) == 0 {
		return nil
	}
	err := terminal.Columns("SCHEDULE\tPLAN\tRULE\tSTATE\tNEXT\tLAST START\tBY", func(w io.Writer) {
		for _, x := range rules {
			next, last := "–", "–"
			if len(x.Next) > 0 {
				next = terminal.Moment(x.Next[0])
			}
			if len(x.Last) > 0 {
				last = terminal.Moment(x.Last[0].At) + " " + x.Last[0].State
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Id, x.Plan, x.Rule, x.State, next, last, cmp.Or(x.By, "–"))
		}
	})
	fmt.Println()
	return err
}

func changeRule(ctx context.Context, s *setting.Settings, id string, change linktrialv1.ChangeRecurrenceRequest_Change) error {
	_, err := newLibraryClient(s.Orchestrator).ChangeRecurrence(ctx, connect.NewRequest(&linktrialv1.ChangeRecurrenceRequest{Id: id, Change: change}))
	return err
}

func newPlanPauseSchedule(s *setting.Settings) *cobra.Command {
	return newPlanChangeSchedule(s, "pause-schedule", "Pause a repeated schedule: nothing starts by it until it is resumed", linktrialv1.ChangeRecurrenceRequest_CHANGE_PAUSE)
}

func newPlanResumeSchedule(s *setting.Settings) *cobra.Command {
	return newPlanChangeSchedule(s, "resume-schedule", "Resume a repeated schedule; starts that passed meanwhile are not made up", linktrialv1.ChangeRecurrenceRequest_CHANGE_RESUME)
}

func newPlanChangeSchedule(s *setting.Settings, name, short string, change linktrialv1.ChangeRecurrenceRequest_Change) *cobra.Command {
	return &cobra.Command{
		Use:     name + " SCHEDULE",
		Short:   short,
		Example: "  linktrial plan " + name + " k3mf82xd",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := changeRule(cmd.Context(), s, args[0], change)
			if err != nil && connect.CodeOf(err) == connect.CodeNotFound {
				return errors.Join(client.Error(s.Orchestrator, err), errors.New("see 'linktrial plan schedules'"))
			}
			return client.Error(s.Orchestrator, err)
		},
	}
}
