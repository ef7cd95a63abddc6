package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"linktrial/internal/testkind"
)

// Callers without a login who take what they can do not grow the orchestrator beyond a bound,
// and a run under way loses nothing: the bench fails where either is not so.
func TestHostileConnections(t *testing.T) {
	testkind.Waits("for connections that say nothing")
	out, errs, code := called(t, "hostile", "--hostile", "200", "--hostile-duration", "10s")
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	if strings.Contains(errs, "error:") {
		t.Error(errs)
	}
	m := regexp.MustCompile(`(?m)^hostile connections, most at a time +(\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatal(out)
	}
	if n, err := strconv.Atoi(m[1]); err != nil || n < 100 {
		t.Errorf("only %s connections were open at a time\n%s", m[1], out)
	}
	t.Log(out)
}
