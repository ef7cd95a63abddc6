package starter

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts processes and waits for them")
