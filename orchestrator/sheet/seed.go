package sheet

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
)

// derive makes a seed of the plan's seed and of what the seed is for: the
// first eight bytes, most significant first, of the SHA-256 of the parts
//
//	"linktrial-seed-1", the plan's seed in decimal, purpose, parts …
//
// each preceded by its length as an unsigned varint, so that no two lists of
// parts give the same input. The purposes and their parts:
//
//	channel  cell, iteration             one realisation for every treatment of an iteration
//	payload  cell, iteration, treatment, flow
//	order    cell, iteration, treatment  the place in a random order is the rank of this
//	on-off   cell, iteration, entry, source, draw   times of a source, the same for every treatment
//
// A cell is radio, topology, size, and parameter and value of each of its settings.
//
// A seed depends on names only, so that adding a treatment, a cell or an
// iteration to a plan leaves all other seeds as they are.
func derive(seed uint64, purpose string, parts ...string) uint64 {
	var b []byte
	for _, p := range append([]string{"linktrial-seed-1", strconv.FormatUint(seed, 10), purpose}, parts...) {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
