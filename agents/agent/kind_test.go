package agent

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts agents as processes, with drivers, and kills them")

var _ = testkind.Waits("for limits, polls and pauses between attempts")
