package trial

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"connectrpc.com/connect"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/yamldoc"
)

// namedPlan is the help of what takes a plan as [readNamed] does.
const namedPlan = `PLAN is a file, "-" for standard input, or the name of a plan at the orchestrator, as 'linktrial
plan list' shows it. What has a "/" or ends with .yaml is a file; where a file and a plan of the
orchestrator have the same name, it is the file.`

// readNamed reads the text of a plan from what a person names: a file as [ReadPlan], or a plan at
// the orchestrator. The name that it returns is for messages. It says where
// a file took the place of a plan of the same name.
func readNamed(ctx context.Context, s *setting.Settings, arg string, say io.Writer) (text []byte, name string, err error) {
	if arg == "-" || strings.Contains(arg, "/") || strings.HasSuffix(arg, ".yaml") {
		return ReadPlan(arg)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	library := newLibraryClient(s.Orchestrator)
	res, failed := library.GetPlan(ctx, connect.NewRequest(&linktrialv1.GetPlanRequest{Name: arg}))
	if st, err := os.Stat(arg); err == nil && !st.IsDir() {
		if failed == nil {
			fmt.Fprintf(say, "%s is a file here and a plan at the orchestrator: this is the file; without it in this folder, the name means the plan\n", arg)
		}
		return ReadPlan(arg)
	}
	if failed == nil {
		return res.Msg.Text, arg, nil
	}
	switch connect.CodeOf(failed) {
	case connect.CodeNotFound, connect.CodeInvalidArgument:
		return nil, "", noPlan(ctx, s.Orchestrator, library, arg)
	}
	return nil, "", fmt.Errorf("there is no file %s here, and plans that are named are at an orchestrator: %w", arg, client.Error(s.Orchestrator, failed))
}

// noPlan is the error of a name that no file and no plan has.
func noPlan(ctx context.Context, base string, library linktrialv1connect.LibraryServiceClient, name string) error {
	res, err := library.ListPlans(ctx, connect.NewRequest(&linktrialv1.ListPlansRequest{}))
	if err != nil {
		return client.Error(base, err)
	}
	var all []string
	for _, p := range res.Msg.Plans {
		all = append(all, p.Name)
	}
	text := fmt.Sprintf("there is no file %s here, and no plan of that name at the orchestrator", name)
	if near := nearNames(name, all); len(near) > 0 {
		return fmt.Errorf("%s; near are: %s", text, strings.Join(near, ", "))
	}
	return fmt.Errorf("%s, which has: %s", text, strings.Join(all, ", "))
}

// nearNames are the names that one who wrote name may have meant: those with a few other
// letters, and those of which one is a part of the other.
func nearNames(name string, all []string) (near []string) {
	lower := strings.ToLower(name)
	for _, w := range all {
		part := len(lower) > 2 && (strings.Contains(w, lower) || strings.Contains(lower, w))
		if part || yamldoc.Suggest(name, []string{w}) != "" {
			near = append(near, w)
		}
	}
	return near
}
