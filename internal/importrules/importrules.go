// Package importrules holds no code: its test enforces which way imports go between
// the rooms of the house (docs/architecture.md).
package importrules
