package preflight

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "measures a path between two agents")
