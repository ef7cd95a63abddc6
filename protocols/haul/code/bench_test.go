package code

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

const benchmarkSymbol = 1200

var benchmarkWindows = []int{16, 64, 256}

func benchmarkSymbols(count int) []Symbol {
	random := rand.New(rand.NewPCG(1, 1))
	symbols := make([]Symbol, count)
	for i := range symbols {
		symbols[i] = Symbol{ID: ID(i), Data: make([]byte, benchmarkSymbol)}
		for j := range symbols[i].Data {
			symbols[i].Data[j] = byte(random.Uint32())
		}
	}
	return symbols
}

// BenchmarkEncode makes repairs; the bytes are those of the symbols that they combine.
func BenchmarkEncode(b *testing.B) {
	for _, window := range benchmarkWindows {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			symbols := benchmarkSymbols(window)
			dst := make([]byte, 0, lengthBytes+benchmarkSymbol)
			b.SetBytes(int64(window * benchmarkSymbol))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				dst = Encode(dst, uint16(i), symbols)
			}
		})
	}
}

// BenchmarkDecode takes windows of which every tenth symbol is lost and replaced by a repair
// over the window; the bytes are those of all symbols.
func BenchmarkDecode(b *testing.B) {
	for _, window := range benchmarkWindows {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			symbols := benchmarkSymbols(window)
			var repairs []Repair
			for seed := range uint16(window/10 + 10) {
				repairs = append(repairs, Repair{Count: window, Seed: seed, Data: Encode(nil, seed, symbols)})
			}
			b.SetBytes(int64(window * benchmarkSymbol))
			b.ReportAllocs()
			for b.Loop() {
				d := NewDecoder(1 << 20)
				known := 0
				for i, s := range symbols {
					if i%10 != 3 {
						known += 1 + len(d.Add(s.ID, s.Data))
					}
				}
				for i := 0; known < window; i++ {
					recovered, _ := d.AddRepair(repairs[i])
					known += len(recovered)
				}
			}
		})
	}
}

// BenchmarkRedundant takes repairs over windows that are complete.
func BenchmarkRedundant(b *testing.B) {
	for _, window := range benchmarkWindows {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			symbols := benchmarkSymbols(window)
			d := NewDecoder(1 << 20)
			for _, s := range symbols {
				d.Add(s.ID, s.Data)
			}
			r := Repair{Count: window, Data: Encode(nil, 0, symbols)}
			b.ReportAllocs()
			for b.Loop() {
				d.AddRepair(r)
			}
		})
	}
}
