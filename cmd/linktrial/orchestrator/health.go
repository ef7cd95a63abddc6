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
	// healthLimit bounds the whole question. It is more than the orchestrator
	// waits for its database, and less than the images give this program.
	healthLimit = server.HealthLimit + time.Second
)

// newHealth asks what runs on this machine whether it is well: for container
// engines, whose images have no other program to ask with.
func newHealth(s *setting.Settings) *cobra.Command {
	var ofAgent bool
	cmd := &cobra.Command{
		Use:    "health",
		Short:  "Ask the orchestrator, or an agent of the data folder, whether it is well",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ofAgent {
				return agent.Working(filepath.Join(s.Data, "agents"))
			}
			return healthy(cmd.Context(), servedAt)
		},
	}
	cmd.Flags().BoolVar(&ofAgent, "agent", false, "ask an agent")
	return cmd
}

// healthy asks with TLS, and without only where nobody speaks TLS there: an
// orchestrator that answers has said what is to be said.
func healthy(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	// Nothing is told to it and nothing believed of it but that it answers.
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as said
	defer t.CloseIdleConnections()
	client := http.Client{Transport: t}
	var silent error
	for _, scheme := range []string{"https", "http"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+"/healthz", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(req)
		if err != nil {
			silent = err
			continue
		}
		b, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("the orchestrator says %s: %s", answer.Status, strings.TrimSpace(string(b)))
		}
		return err
	}
	if errors.Is(silent, context.DeadlineExceeded) {
		return fmt.Errorf("the orchestrator at %s does not answer within %s", address, healthLimit)
	}
	return fmt.Errorf("no orchestrator answers: %w", silent)
}
