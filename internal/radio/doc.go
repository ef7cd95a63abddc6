// Package radio holds what is known of radios and of their positions: radio
// profiles (Table 1 of breedy-2015 and its like), topologies, and the emulated
// network that follows from one of each. Pure data; it is read from YAML and
// travels inside run sheets as JSON. Traces come as CSV.
package radio
