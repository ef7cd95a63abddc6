package evidence

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// maxManifest bounds a manifest, in bytes.
const maxManifest = 16 << 20

// parseManifest reads a manifest (RFC 8493, section 2.1.3; the tag manifest: 2.2.1): a SHA-256
// in hexadecimal and the name of a file a line. Errors name the line.
func parseManifest(text []byte, payload bool) (map[string]string, error) {
	out, seen := map[string]string{}, newNameSet()
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		name, digest, err := manifestLine(strings.TrimRight(line, "\r\n"), payload)
		if err == nil {
			err = seen.add(name)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out[name] = digest
	}
	if n == 0 {
		return nil, errors.New("it is empty, expected a SHA-256 and the name of a file a line")
	}
	return out, nil
}

func manifestLine(line string, payload bool) (name, digest string, err error) {
	digest, name, _ = strings.Cut(line, " ")
	digest = strings.ToLower(digest)
	if !isSHA256(digest) {
		return "", "", fmt.Errorf("it begins with %.80q, expected a SHA-256 in 64 hexadecimal digits", digest)
	}
	// RFC 8493, section 2.1.3: these three bytes of names are escaped.
	name = strings.NewReplacer("%0A", "\n", "%0a", "\n", "%0D", "\r", "%0d", "\r", "%25", "%").Replace(strings.TrimLeft(name, " \t"))
	if err := checkName(name); err != nil {
		return "", "", fmt.Errorf("%.200q: %w", name, err)
	}
	if strings.HasPrefix(name, Payload+"/") != payload {
		if payload {
			return "", "", fmt.Errorf("%s: expected a file below %s", name, Payload)
		}
		return "", "", fmt.Errorf("%s: files below %s are in %s", name, Payload, Manifest)
	}
	return name, digest, nil
}

func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32 && strings.ToLower(s) == s
}
