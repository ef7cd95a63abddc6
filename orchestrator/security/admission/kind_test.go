package admission_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "holds connections against limits in time")
