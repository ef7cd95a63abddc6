package contract

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The document lists the times for which Linktrial waits.
func TestPatienceInDocument(t *testing.T) {
	const path = "../../docs/driver-contract.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		fmt.Sprintf("| query: from its start to its end | %.0f s |", QueryPatience.Seconds()),
		fmt.Sprintf("| server, relay: from its start to `ready` | %.0f s |", ReadyPatience.Seconds()),
		fmt.Sprintf("| client: from its start to `connected` or `error` | `limits.connect_ms` + %.0f s |", LimitPatience.Seconds()),
		fmt.Sprintf("| client: from `connected` to `result` or `error` | `limits.transfer_ms` + %.0f s |", LimitPatience.Seconds()),
		fmt.Sprintf("| client: from `result` or `error` to its exit | %.0f s |", ExitPatience.Seconds()),
		fmt.Sprintf("| from SIGTERM to the exit; SIGKILL follows | %.0f s |", StopPatience.Seconds()),
	} {
		if !strings.Contains(string(b), row) {
			t.Errorf("%s has no row %q, which patience.go makes true", path, row)
		}
	}
}
