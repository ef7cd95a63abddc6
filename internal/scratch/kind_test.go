package scratch_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "kills processes that have temporary folders")
