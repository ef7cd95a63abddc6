package document

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	colourOf  = regexp.MustCompile(`--([a-z-]+): #([0-9a-f]{6});`)
	anyColour = regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\(`)
)

// schemes reads the colours of both schemes from the style.
func schemes(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	blocks := strings.SplitN(style, "prefers-color-scheme: dark", 2)
	require.Len(t, blocks, 2)
	light, dark = map[string]string{}, map[string]string{}
	for _, m := range colourOf.FindAllStringSubmatch(blocks[0], -1) {
		light[m[1]], dark[m[1]] = m[2], m[2]
	}
	for _, m := range colourOf.FindAllStringSubmatch(blocks[1], -1) {
		require.Contains(t, light, m[1])
		dark[m[1]] = m[2]
	}
	require.Len(t, anyColour.FindAllString(style, -1), len(colourOf.FindAllString(style, -1)), "a colour that no scheme has")
	return light, dark
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(hex, 16, 32)
	require.NoError(t, err)
	channel := func(shift int) float64 {
		c := float64(n>>shift&255) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*channel(16) + 0.7152*channel(8) + 0.0722*channel(0)
}

// Texts have the contrast that WCAG 2.2, 1.4.3 (AA) asks for, and what has the focus that of 1.4.11.
func TestContrast(t *testing.T) {
	light, dark := schemes(t)
	require.NotEqual(t, light, dark)
	for name, colours := range map[string]map[string]string{"light": light, "dark": dark} {
		for _, pair := range []struct {
			ink, ground string
			least       float64
		}{
			{"text", "bg", 4.5}, {"text", "surface", 4.5}, {"muted", "bg", 4.5}, {"link", "bg", 4.5}, {"warn", "warn-soft", 4.5},
			{"link", "bg", 3}, {"muted", "surface", 3}, {"warn", "bg", 3},
		} {
			a, b := luminance(t, colours[pair.ink]), luminance(t, colours[pair.ground])
			ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05)
			require.GreaterOrEqual(t, ratio, pair.least, "%s: %s on %s", name, pair.ink, pair.ground)
		}
	}
}
