package main

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "TestManualRenders starts groff")
