package results

import (
	"os"
	"strings"
	"testing"
)

// Every column of the files that are written here is described.
func TestColumnsAreDescribed(t *testing.T) {
	text, err := os.ReadFile("../../../docs/exports.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, columns := range map[string][]string{"samples.csv": samplesHeader, "channels.csv": channelsHeader, "readings.csv": readingsHeader} {
		_, section, found := strings.Cut(string(text), "\n## "+file+"\n")
		if !found {
			t.Errorf("%s has no section", file)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, c := range columns {
			if !strings.Contains(section, "`"+c+"`") {
				t.Errorf("%s: the column %s is not described", file, c)
			}
		}
	}
}
