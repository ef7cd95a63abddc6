package library

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts plans at stated times")
