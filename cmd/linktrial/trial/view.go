package trial

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"linktrial/api/gen/linktrial/v1/linktrialv1connect"
	"linktrial/cmd/linktrial/client"
	"linktrial/cmd/linktrial/setting"
	"linktrial/orchestrator/server"
)

// orchestratorView is a connection for reading results: to the running
// orchestrator, or to one that was started on the data folder for one command.
type orchestratorView struct {
	base   string
	client linktrialv1connect.OperatorServiceClient
	close  func()
}

// openOrchestrator uses the orchestrator at --orchestrator; where none answers
// and the user named none, it starts one on the data folder for as long as the
// command lasts, so that results can be read after a rehearsal has ended.
func openOrchestrator(ctx context.Context, s *setting.Settings, named bool) (*orchestratorView, error) {
	up, err := client.Reachable(ctx, s.Orchestrator)
	if err != nil {
		return nil, client.Error(s.Orchestrator, err)
	}
	if up || named || os.Getenv("LINKTRIAL_ORCHESTRATOR") != "" {
		return &orchestratorView{base: s.Orchestrator, client: client.New(s.Orchestrator), close: func() {}}, nil
	}
	if _, err := os.Stat(s.Data); err != nil {
		return nil, fmt.Errorf("no orchestrator answers at %s, and the data folder %s does not exist yet: start with 'linktrial rehearse plans/quickstart.yaml' or 'linktrial serve'", s.Orchestrator, s.Data)
	}
	cat, err := s.LoadCatalog()
	if err != nil {
		return nil, err
	}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	srv, err := server.Start(ctx, s.ServerConfig("127.0.0.1:0", "", cat, quiet))
	if err != nil {
		return nil, err
	}
	base := "http://" + srv.Addr()
	return &orchestratorView{base: base, client: client.New(base), close: func() {
		stop, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := srv.Stop(stop); err != nil {
			quiet.Error("stop the orchestrator", "error", err)
		}
	}}, nil
}
