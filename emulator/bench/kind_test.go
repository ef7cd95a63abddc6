package bench

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "measures the accuracy and capacity of the emulator")
