package e2e

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "rehearses in real time, and kills what takes part")
