package images

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "asks a container engine")
