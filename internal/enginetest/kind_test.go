package enginetest

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts a container engine")
