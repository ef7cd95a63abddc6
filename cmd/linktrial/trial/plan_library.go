package trial

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/cmd/linktrial/terminal"
	"linktrial/orchestrator/library/recurrence"
)

func newLibraryClient(base string) linktrialv1connect.LibraryServiceClient {
	return linktrialv1connect.NewLibraryServiceClient(client.HTTP(), base, connect.WithGRPC())
}

func newPlanList(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the plans at the orchestrator: saved ones, and those that come with Linktrial",
		Example: `  linktrial plan list`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := newLibraryClient(s.Orchestrator).ListPlans(cmd.Context(), connect.NewRequest(&linktrialv1.ListPlansRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			return terminal.Columns("PLAN\tREVISION\tCHANGED\tPROBLEMS\tWHAT IT IS", func(w io.Writer) {
				for _, p := range res.Msg.Plans {
					revision, changed := strconv.Itoa(int(p.Revision)), "–"
					if p.Changed != nil {
						changed = terminal.Moment(p.Changed)
					}
					if p.Shipped {
						revision = "shipped"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", p.Name, revision, changed, p.Problems, p.Summary)
				}
			})
		},
	}
}

func newPlanShow(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Print the text of a plan at the orchestrator",
		Example: `  linktrial plan show quickstart > mine.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			res, err := newLibraryClient(s.Orchestrator).GetPlan(cmd.Context(), connect.NewRequest(&linktrialv1.GetPlanRequest{Name: args[0]}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			_, err = os.Stdout.Write(res.Msg.Text)
			return err
		},
	}
}

func newPlanSave(s *setting.Settings) *cobra.Command {
	var name string
	var revision int32
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save a plan at the orchestrator, also one that has problems",
		Long: `Save keeps a plan at the orchestrator under the name of its file, or under --name.
To replace a saved plan give --revision, the revision that you edited (see 'linktrial
plan list'): if somebody else has saved the plan since, nothing is overwritten.`,
		Example: `  linktrial plan save mine.yaml
  linktrial plan save mine.yaml --name evening --revision 3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, _, err := ReadPlan(args[0])
			if err != nil {
				return err
			}
			if name == "" {
				name = strings.TrimSuffix(filepath.Base(args[0]), ".yaml")
			}
			res, err := newLibraryClient(s.Orchestrator).SavePlan(cmd.Context(), connect.NewRequest(&linktrialv1.SavePlanRequest{Name: name, Text: text, Revision: revision}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			p := res.Msg.Plan
			fmt.Printf("%s is saved, revision %d: %s\n", p.Name, p.Revision, p.Summary)
			if p.Problems > 0 {
				fmt.Printf("It cannot be run before its %s gone: linktrial plan check %s\n", terminal.Count(int(p.Problems), "problem")+plural(int(p.Problems)), args[0])
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the plan (default: the file's, without .yaml)")
	cmd.Flags().Int32Var(&revision, "revision", 0, "the revision that you edited; 0: the plan must be new")
	return cmd
}

func plural(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

func newPlanDelete(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a saved plan",
		Example: `  linktrial plan delete mine`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := newLibraryClient(s.Orchestrator).DeletePlan(cmd.Context(), connect.NewRequest(&linktrialv1.DeletePlanRequest{Name: args[0]}))
			return client.Error(s.Orchestrator, err)
		},
	}
}

func newPlanSchedule(s *setting.Settings) *cobra.Command {
	var name, by string
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "schedule NAME TIME",
		Short: "Schedule the start of a plan, once or by a rule",
		Long: `Schedule has the orchestrator start a plan, with its text of now, at a time. TIME is
one of

  2026-05-01T08:30:00Z    RFC 3339
  "2026-05-01 08:30"      UTC
  08:30                   UTC, today or tomorrow
  +90m                    from now

Where a node is missing then, or the orchestrator is down, the plan starts when both are
there again, at most --patience late. 'linktrial plan schedules' shows who is missing,
and why a plan did not start.

Instead of TIME, a rule has the plan start again and again until somebody pauses or
removes it, or until a last day:

  daily 08:30 Europe/Berlin
  weekdays 08:30 Europe/Berlin until 2026-12-31
  mon,thu 20:00                                   UTC
  every 6h                                        from now; 5m to 366d
  every 2d from 2026-05-01 08:30 Europe/Berlin

A time of day follows the clocks of its zone. Where they skip it, the plan starts at
the first moment after; where they show it twice, it starts the first time. Each start
has a seed of its own: the plan's, raised by one with each start. A start that finds
the run of an earlier one under way is skipped.`,
		Example: `  linktrial plan schedule quickstart 08:30
  linktrial plan schedule mine daily 08:30 Europe/Berlin
  linktrial plan schedule quickstart +90m --name evening --patience 10m`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			when := strings.Join(args[1:], " ")
			if by == "" {
				if u, err := user.Current(); err == nil {
					by = u.Username
				}
			}
			if recurrence.Is(when) {
				return scheduleByRule(cmd.Context(), s, &linktrialv1.ScheduleRecurrenceRequest{Plan: args[0], Rule: when, Name: name, By: by, Patience: durationpb.New(patience)})
			}
			at, err := parseWhen(when, time.Now())
			if err != nil {
				return err
			}
			res, err := newLibraryClient(s.Orchestrator).Schedule(cmd.Context(), connect.NewRequest(&linktrialv1.ScheduleRequest{Plan: args[0], At: timestamppb.New(at), Name: name, By: by, Patience: durationpb.New(patience)}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			x := res.Msg.Schedule
			fmt.Printf("%s starts at %s (in %s): schedule %s\n", x.Plan, terminal.Moment(x.At), terminal.ForPeople(time.Until(x.At.AsTime()).Seconds()), x.Id)
			if x.Message != "" {
				fmt.Println(terminal.Printable(x.Message))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the campaign (default: the plan's)")
	cmd.Flags().DurationVar(&patience, "patience", 2*time.Minute, "how late the plan may start, 10s to 24h")
	cmd.Flags().StringVar(&by, "by", "", "who schedules it, which is recorded (default: the user)")
	return cmd
}

// parseWhen parses the TIME of 'linktrial plan schedule', which is in UTC where it has no zone.
func parseWhen(text string, now time.Time) (time.Time, error) {
	now = now.UTC()
	if t, ok := terminal.ParseTime(text); ok {
		return t, nil
	}
	if t, err := time.Parse("15:04", text); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, time.UTC)
		if at.Before(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, t.Hour(), t.Minute(), 0, 0, time.UTC)
		}
		return at, nil
	}
	if rest, ok := strings.CutPrefix(text, "+"); ok && !strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "+") {
		if d, err := time.ParseDuration(rest); err == nil {
			return now.Add(d), nil
		}
	}
	return time.Time{}, fmt.Errorf("time %q, expected one like 2026-05-01T08:30:00Z, \"2026-05-01 08:30\", 08:30 or +90m, or a rule like %s", text, recurrence.Forms)
}

func newPlanSchedules(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "schedules",
		Short:   "List repeated schedules and scheduled starts, and the outcome of earlier ones",
		Example: `  linktrial plan schedules`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			res, err := newLibraryClient(s.Orchestrator).ListSchedules(cmd.Context(), connect.NewRequest(&linktrialv1.ListSchedulesRequest{}))
			if err != nil {
				return client.Error(s.Orchestrator, err)
			}
			if err := printRules(res.Msg.Recurrences); err != nil {
				return err
			}
			if len(res.Msg.Schedules) == 0 {
				if len(res.Msg.Recurrences) > 0 {
					return nil
				}
				fmt.Println("No start is scheduled. Set a time: linktrial plan schedule NAME TIME")
				return nil
			}
			return terminal.Columns("SCHEDULE\tPLAN\tAT\tSTATE\tCAMPAIGN\tBY\tMESSAGE", func(w io.Writer) {
				for _, x := range res.Msg.Schedules {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Id, x.Plan, terminal.Moment(x.At), x.State, cmp.Or(x.CampaignId, "–"), cmp.Or(x.By, "–"), strings.ReplaceAll(x.Message, "\n", "; "))
				}
			})
		},
	}
}

func newPlanUnschedule(s *setting.Settings) *cobra.Command {
	return &cobra.Command{
		Use:     "unschedule SCHEDULE",
		Short:   "Cancel a scheduled start, or remove a repeated schedule",
		Example: `  linktrial plan unschedule k3mf82xd`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := newLibraryClient(s.Orchestrator).CancelSchedule(cmd.Context(), connect.NewRequest(&linktrialv1.CancelScheduleRequest{Id: args[0]}))
			if err != nil && connect.CodeOf(err) == connect.CodeNotFound {
				err = changeRule(cmd.Context(), s, args[0], linktrialv1.ChangeRecurrenceRequest_CHANGE_REMOVE)
			}
			if connect.CodeOf(err) == connect.CodeNotFound && err != nil {
				return errors.Join(client.Error(s.Orchestrator, err), errors.New("see 'linktrial plan schedules'"))
			}
			return client.Error(s.Orchestrator, err)
		},
	}
}
