package docker_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts drivers in containers, stops and kills them")
