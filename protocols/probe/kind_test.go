package main

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "checks the driver against the contract")

var _ = testkind.Waits("for limits, cuts of the link and silent peers")
