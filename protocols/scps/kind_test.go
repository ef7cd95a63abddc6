package main

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "checks the driver against the contract")
