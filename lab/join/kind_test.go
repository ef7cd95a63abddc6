package join

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "joins emulated radios to networks that others made")
