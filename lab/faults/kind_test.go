package faults

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "stops and kills processes")
