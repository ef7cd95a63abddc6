package unit

import _ "embed"

// Source is unit.go, for projects outside of this repository ([linktrial/protocols]).
//
//go:embed unit.go
var Source []byte
