package process

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts processes, and ends their parents")
