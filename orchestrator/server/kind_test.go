package server_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "starts orchestrators, stalls and cuts their connections")
