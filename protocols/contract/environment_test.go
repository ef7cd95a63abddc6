package contract

import (
	"slices"
	"testing"
)

func TestEnvironment(t *testing.T) {
	there := map[string]string{"PATH": "/bin", "HOME": "", "SECRET": "x", "PYTHONPATH": "/elsewhere"}
	got := Environment(func(k string) (string, bool) { v, ok := there[k]; return v, ok })
	want := []string{"LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "PATH=/bin", "HOME="}
	if !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}
