package whole

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "runs agents and an orchestrator over emulated radios, and damages what they wrote")
