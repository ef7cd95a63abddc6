package netns

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// lossUnits is the resolution of a probability: one in so many.
const lossUnits = 1_000_000

// loseInAir has the air of plain radios lose each IPv4 packet with a probability, behind
// the sender's interface and before the receiver's.
func loseInAir(air string, probability float64) error {
	h, err := netns.GetFromName(air)
	if err != nil {
		return fmt.Errorf("the air of plain radios: %w", err)
	}
	defer h.Close()
	c, err := nftables.New(nftables.WithNetNSFd(int(h)))
	if err != nil {
		return fmt.Errorf("the air of plain radios: %w", err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: "air"})
	chain := c.AddChain(&nftables.Chain{Name: "loss", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyPROTOCOL, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(unix.ETH_P_IP)},
		&expr.Numgen{Register: 1, Modulus: lossUnits, Type: unix.NFT_NG_RANDOM},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: binary.BigEndian.AppendUint32(nil, uint32(probability*lossUnits))},
		&expr.Counter{},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("losses in the air of plain radios (the kernel needs nf_tables for bridges, and numgen): %w", err)
	}
	return nil
}
