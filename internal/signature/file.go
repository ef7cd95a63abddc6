package signature

import (
	"crypto/ed25519"
	"fmt"
	"strings"
)

// Two kinds of files have keys, a key a line; # begins a comment.
//
//	ed25519:BASE64                                 a file of trusted keys
//	ed25519:BASE64 by IDENTITY BASE64              a file of endorsed keys

// MaxFile bounds a file of keys, and one with a signature, in bytes: a line has some
// hundred.
const MaxFile = 1 << 20

// FormatKeys writes a file of trusted keys.
func FormatKeys(comment string, keys ...PublicKey) []byte {
	var b strings.Builder
	if comment != "" {
		fmt.Fprintf(&b, "# %s\n", comment)
	}
	for _, k := range keys {
		fmt.Fprintf(&b, "%s # %s\n", k, k.ID())
	}
	return []byte(b.String())
}

// ParseKeys reads a file of trusted keys; it has at least one.
func ParseKeys(file string, b []byte) ([]PublicKey, error) {
	var out []PublicKey
	err := lines(file, b, func(fields []string) error {
		if len(fields) != 1 {
			return fmt.Errorf("%d words, expected one public key a line", len(fields))
		}
		k, err := ParsePublicKey(fields[0])
		out = append(out, k)
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no key, expected at least one line such as ed25519:AAAA…=", file)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// FormatEndorsed writes a file of endorsed keys.
func FormatEndorsed(list []Endorsed) []byte {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%s by %s %s\n", e.Key, e.By, encoding.EncodeToString(e.Endorsement))
	}
	return []byte(b.String())
}

// ParseEndorsed reads a file of endorsed keys. It does not verify the signatures;
// [Keys.Extend] does.
func ParseEndorsed(file string, b []byte) ([]Endorsed, error) {
	var out []Endorsed
	err := lines(file, b, func(fields []string) error {
		if len(fields) != 4 || fields[1] != "by" || !isID(fields[2]) {
			return fmt.Errorf("expected a public key, the word by, the identity of a key and its signature")
		}
		k, err := ParsePublicKey(fields[0])
		if err != nil {
			return err
		}
		endorsement, err := encoding.DecodeString(fields[3])
		if err != nil || len(endorsement) != ed25519.SignatureSize {
			return fmt.Errorf("signature %.80q, expected %d bytes in base64", fields[3], ed25519.SignatureSize)
		}
		out = append(out, Endorsed{Key: k, By: fields[2], Endorsement: endorsement})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// lines calls take with the fields of every line that is not empty.
func lines(file string, b []byte, take func(fields []string) error) error {
	n := 0
	for line := range strings.SplitSeq(string(b), "\n") {
		n++
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			if err := take(fields); err != nil {
				return fmt.Errorf("%s:%d: %w", file, n, err)
			}
		}
	}
	return nil
}
