package liveness

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "pulls cables")
