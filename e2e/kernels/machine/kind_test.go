package machine

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "has programs make images of disks")
