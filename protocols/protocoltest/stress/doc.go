// Package stress carries many small transfers of a driver, several at once beside
// busy processors, and stops clients and servers in the middle of some: what ends
// by a signal or with a sanitizer's report is a crash.
//
// Comes in: folders of drivers and how many transfers. Goes out: a [Report]. May
// import: protocols/contract, internal leaves, netlink; no driver. Used by tests only.
package stress
