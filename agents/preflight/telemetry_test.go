package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecimal(t *testing.T) {
	for v, want := range map[float64]string{27691231: "27691231", 10.733912: "10.7339", 6800: "6800", 0: "0", -0.5: "-0.5", 1e15: "1000000000000000"} {
		require.Equal(t, want, decimal(v))
	}
}
