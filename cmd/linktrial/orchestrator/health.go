package orchestrator

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"linktrial/agents/agent"
	"linktrial/cmd/linktrial/setting"
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
			// Nothing is told to it and nothing believed of it but that it answers.
			client := http.Client{Timeout: 4 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as said
			var last error
			for _, scheme := range []string{"http", "https"} {
				req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, scheme+"://127.0.0.1:7700/healthz", nil)
				if err != nil {
					return err
				}
				answer, err := client.Do(req)
				if err != nil {
					last = err
					continue
				}
				b, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					return nil
				}
				last = fmt.Errorf("the orchestrator says %s: %s", answer.Status, b)
			}
			return last
		},
	}
	cmd.Flags().BoolVar(&ofAgent, "agent", false, "ask an agent")
	return cmd
}
