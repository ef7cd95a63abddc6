package driver

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "reads lines against deadlines")
