// Package plans carries the plans that come with Linktrial. Goes out: the files.
// Parsed by orchestrator/plan.
package plans

import "embed"

// Files holds every *.yaml of this folder.
//
//go:embed *.yaml
var Files embed.FS
