package lab

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts a lab, and signals it")
