package preflight

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "measures a path between two agents")

var _ = testkind.Waits("for answers and the end of exchanges")
