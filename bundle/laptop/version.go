package laptop

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	// release is what 'git describe' makes of a tag: v1.2.0, v1.2.0-rc1, v1.2.0-3-g9d9bc2cc.
	release = regexp.MustCompile(`^v?(\d+(?:\.\d+)+)(.*)$`)
	// upstream is what Debian's policy allows in a version, section 5.6.12.
	upstream = regexp.MustCompile(`^[0-9][A-Za-z0-9.+~]*$`)
)

// debianVersion is a version of the program as Debian compares it: a later commit has a
// higher one. Where no release is behind the version, the time of the commit makes it so.
func debianVersion(version string, committed time.Time) (string, error) {
	var v string
	if m := release.FindStringSubmatch(version); m != nil {
		rest := m[2]
		// What comes before a release sorts before it.
		for _, before := range []string{"-alpha", "-beta", "-rc"} {
			if strings.HasPrefix(rest, before) {
				rest = "~" + rest[1:]
			}
		}
		v = m[1] + strings.ReplaceAll(rest, "-", "+")
	} else {
		v = "0+" + committed.UTC().Format("20060102150405") + "." + strings.ReplaceAll(version, "-", ".")
	}
	if version == "" || !upstream.MatchString(v) {
		return "", fmt.Errorf("package: version %q of the program, expected one such as v1.2.0 or 9d9bc2cc", version)
	}
	return v, nil
}
