package main

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "measures rates and processor time")
