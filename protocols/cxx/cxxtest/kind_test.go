package cxxtest_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts drivers as processes, and kills them")
