// Package topologies carries the topologies that come with Linktrial, one YAML
// file each. Goes out: the files. Read by orchestrator/catalog through
// internal/radio.
package topologies

import "embed"

// Files holds every *.yaml of this folder.
//
//go:embed *.yaml
var Files embed.FS
