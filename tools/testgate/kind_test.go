package main

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.Exact, "starts go list; TestRoom says its own")
