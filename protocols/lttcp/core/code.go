package core

import "github.com/klauspost/reedsolomon"

// codecs make and use the code of blocks: a Reed–Solomon code over bytes of 255
// packets at most, shortened to the segments that a block has. Systematic, and
// packet i of the code is the same however many are made, so those that were not
// sent ahead are still there to be sent on request.
type codecs struct {
	of map[[2]int]reedsolomon.Encoder
}

// codecsKept bounds how many matrices are kept; windows keep near the same size.
const codecsKept = 64

// get is the codec of so many segments that makes at least so many packets.
func (c *codecs) get(segments, packets int) (enc reedsolomon.Encoder, made int, err error) {
	most := 255 - segments
	for made = 4; made < packets; made *= 2 {
	}
	made = min(made, most)
	key := [2]int{segments, made}
	if enc = c.of[key]; enc != nil {
		return enc, made, nil
	}
	// Without the cache of inversions, which would grow with every pattern of losses.
	enc, err = reedsolomon.New(segments, made, reedsolomon.WithInversionCache(false), reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		return nil, 0, err
	}
	if c.of == nil || len(c.of) >= codecsKept {
		c.of = map[[2]int]reedsolomon.Encoder{}
	}
	c.of[key] = enc
	return enc, made, nil
}

// encode makes the first packets of a block's code, at least want of them. The
// segments are of one size but the last, which is padded with zeros.
func (c *codecs) encode(segments [][]byte, size, want int) ([][]byte, error) {
	enc, made, err := c.get(len(segments), want)
	if err != nil {
		return nil, err
	}
	shards := make([][]byte, len(segments)+made)
	copy(shards, segments)
	pad(shards[:len(segments)], size)
	space := make([]byte, made*size)
	for i := range made {
		shards[len(segments)+i] = space[i*size : (i+1)*size : (i+1)*size]
	}
	if err := enc.Encode(shards); err != nil {
		return nil, err
	}
	return shards[len(segments):], nil
}

// pad makes a block's last segment as long as the others.
func pad(segments [][]byte, size int) {
	last := &segments[len(segments)-1]
	if *last != nil && len(*last) < size {
		full := make([]byte, size)
		copy(full, *last)
		*last = full
	}
}

// restore fills in the segments that are nil from packets of the code (by their
// place behind the segments). last is the length of the last segment.
func (c *codecs) restore(segments [][]byte, code map[int][]byte, size, last int) error {
	highest := 0
	for i := range code {
		highest = max(highest, i)
	}
	enc, made, err := c.get(len(segments), highest+1)
	if err != nil {
		return err
	}
	shards := make([][]byte, len(segments)+made)
	copy(shards, segments)
	pad(shards[:len(segments)], size)
	for i, p := range code {
		shards[len(segments)+i] = p
	}
	if err := enc.ReconstructData(shards); err != nil {
		return err
	}
	for i := range segments {
		if segments[i] == nil {
			segments[i] = shards[i]
		}
	}
	end := &segments[len(segments)-1]
	*end = (*end)[:last]
	return nil
}
