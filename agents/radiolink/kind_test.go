package radiolink

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "talks to an emulated radio as a process")
