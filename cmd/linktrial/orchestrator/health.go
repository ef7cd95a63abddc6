package orchestrator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"linktrial/agents/agent"
	"linktrial/cmd/linktrial/setting"
	"linktrial/orchestrator/server"
)

const (
	// servedAt is where an orchestrator in a container listens.
	servedAt = "127.0.0.1:7700"
	// healthLimit bounds the whole check. It is longer than the orchestrator waits
	// for its database, and shorter than the timeout of the images' health checks.
	healthLimit = server.HealthLimit + time.Second
)

// newHealth checks what runs on this machine, for container engines: the images have
// no other program for that.
func newHealth(s *setting.Settings) *cobra.Command {
	var ofAgent bool
	cmd := &cobra.Command{
		Use:    "health",
		Short:  "Check the orchestrator, or an agent of the data folder (started by container engines)",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ofAgent {
				return agent.Working(filepath.Join(s.Data, "agents"))
			}
			return healthy(cmd.Context(), servedAt)
		},
	}
	cmd.Flags().BoolVar(&ofAgent, "agent", false, "check an agent")
	return cmd
}

// healthy asks the orchestrator at an address for its health, with TLS, and without
// only where the server does not speak TLS. The first answer is final.
func healthy(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	// The certificate does not matter: nothing secret is sent, and only the status is used.
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as stated above
	defer t.CloseIdleConnections()
	client := http.Client{Transport: t}
	var failed error
	for _, scheme := range []string{"https", "http"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/healthz", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(req)
		if err != nil {
			failed = err
			continue
		}
		b, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("the orchestrator answers %s: %s", answer.Status, strings.TrimSpace(string(b)))
		}
		return err
	}
	if errors.Is(failed, context.DeadlineExceeded) {
		return fmt.Errorf("the orchestrator at %s does not answer within %s", address, healthLimit)
	}
	return fmt.Errorf("no orchestrator answers: %w", failed)
}
