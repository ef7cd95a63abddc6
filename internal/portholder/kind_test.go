package portholder

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "looks for processes that hold ports")
