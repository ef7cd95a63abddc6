//go:build standin

package main

const standInAllowed = true
