package machines

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "runs agents and an orchestrator, and cuts them from each other")
