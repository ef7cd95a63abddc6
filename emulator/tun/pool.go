package tun

// pool holds the bytes of packets inside the network. It grows by chunks and
// never shrinks, so that in steady state a packet costs no allocation.
type pool struct {
	size   int // of a buffer
	chunks [][]byte
	free   []uint32
}

const (
	chunkBuffers = 512
	// maxBuffers bounds the emulator's memory where radio queues have no
	// bound: about 200 MB of full-sized packets.
	maxBuffers = 256 * chunkBuffers
)

// reset takes all buffers back; packets up to mtu fit, and one byte more
// tells a packet over the MTU.
func (p *pool) reset(mtu int) {
	if size := (mtu + 64) &^ 63; size != p.size {
		p.size, p.chunks = size, nil
	}
	p.free = p.free[:0]
	for i := range uint32(len(p.chunks) * chunkBuffers) {
		if i != scratch {
			p.free = append(p.free, i)
		}
	}
	if len(p.chunks) == 0 {
		p.grow()
	}
}

// scratch is the buffer that is lent again and again when the pool is at its limit.
const scratch = 0

func (p *pool) grow() {
	first := uint32(len(p.chunks) * chunkBuffers)
	p.chunks = append(p.chunks, make([]byte, chunkBuffers*p.size))
	for i := range uint32(chunkBuffers) {
		if first+i != scratch {
			p.free = append(p.free, first+i)
		}
	}
}

// get lends a buffer. Not ok: the pool is at its limit, and the buffer's
// content lasts until the next get only.
func (p *pool) get() (handle uint32, ok bool) {
	if len(p.free) == 0 {
		if len(p.chunks)*chunkBuffers >= maxBuffers {
			return scratch, false
		}
		p.grow()
	}
	handle = p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return handle, true
}

func (p *pool) put(handle uint32) {
	if handle != scratch {
		p.free = append(p.free, handle)
	}
}

func (p *pool) at(handle uint32) []byte {
	off := int(handle%chunkBuffers) * p.size
	return p.chunks[handle/chunkBuffers][off : off+p.size]
}
