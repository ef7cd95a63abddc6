package runner_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts drivers as processes, stops and kills them")

var _ = testkind.Waits("for drivers that hang")
