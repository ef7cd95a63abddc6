// Package radioprofiles carries the radio profiles that come with Linktrial, one
// YAML file a radio, each parameter with its source. Goes out: the files. Read by
// orchestrator/catalog through internal/radio.
package radioprofiles

import "embed"

// Files holds every *.yaml of this folder.
//
//go:embed *.yaml
var Files embed.FS
