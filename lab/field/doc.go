// Package field is what happens to the path between two nodes with plain radios beside
// the interfaces themselves: packet filters, address translation, routes around the
// radio, a second host of an address, ports that another program has.
//
// Comes in: a lab of plain radios (lab/netns) and what is to happen where. Goes out: a
// function that ends it. Needs root.
package field
