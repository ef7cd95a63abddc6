package telemetrysource

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func port(t *testing.T, a net.Addr) int {
	t.Helper()
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		t.Fatal(err)
	}
	return int(ap.Port())
}

// check reads a source once and says what came of it.
func check(t *testing.T, n Node, s Source) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	values, err := Read(ctx, &s, s.Host, &n)
	line := s.Name
	for _, v := range values {
		line += fmt.Sprintf(" %s=%.6g %s", v.Name, v.Value, v.Unit)
	}
	if err != nil {
		line += " ! " + err.Error()
	}
	return line
}
