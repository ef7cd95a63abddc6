// Package licences has the licences of what others wrote and is in the programs and
// pages of Linktrial. Goes out: the list and the texts, for the program, bundles and
// images. tools/supply writes them, and fails where a dependency's licence is not allowed.
package licences

import "embed"

// Files holds the list (third-party.txt) and the texts (texts.txt).
//
//go:embed *.txt
var Files embed.FS
