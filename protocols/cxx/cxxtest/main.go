package cxxtest

import (
	"flag"
	"os"
	"testing"
)

// Main is a package's TestMain. Its tests wait for networks and limits most of
// the time, so more of them run at once than there are processors; a number
// on the command line counts.
func Main(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
