package importrules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// timeOfDay is the kernel's time of day, taken for something that is kept or sent.
var timeOfDay = regexp.MustCompile(`time\.Now\(\)\.(UTC|Unix\w*|Format|Local|Round|Truncate|In|Date|Year|Month|Day)\b|CLOCK_REALTIME`)

// What runs on a node has its time of day from internal/wallclock: in a lab each node has
// a clock of its own.
func TestTimeOfDay(t *testing.T) {
	files := 0
	for _, room := range []string{"agents", "executor"} {
		err := filepath.WalkDir(filepath.Join("..", "..", room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			files++
			b, err := os.ReadFile(path)
			for i, line := range strings.Split(string(b), "\n") {
				if timeOfDay.MatchString(line) {
					t.Errorf("%s:%d: %s: take it from the node's clock (internal/wallclock)", path, i+1, strings.TrimSpace(line))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 {
		t.Errorf("%d files were read", files)
	}
	for line, found := range map[string]bool{"at := time.Now().UTC()": true, "x.At = time.Now().UnixNano()": true, "deadline := time.Now().Add(d)": false} {
		if timeOfDay.MatchString(line) != found {
			t.Errorf("%s: found %v", line, !found)
		}
	}
}
