package bench

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "measures rates beside other transports")
