package edge_test

import "linktrial/internal/testkind"

var _ = testkind.OfPackage(testkind.RealTime, "sends datagrams over sockets, against deadlines")
