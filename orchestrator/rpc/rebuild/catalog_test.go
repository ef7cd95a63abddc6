package rebuild

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/evidence"
	"linktrial/orchestrator/plan"
)

// A plan with published values reads with the drivers, radio profiles and topologies of its
// bag; one that comes with this program, too, is that of this program.
func TestCatalogOfBag(t *testing.T) {
	bag := folder(t.TempDir())
	driver, err := os.ReadFile("../../catalog/testdata/drivers/tcp/driver.yaml")
	require.NoError(t, err)
	bag.write(t, evidence.Drivers+"/tcp/driver.yaml", driver)
	profile, err := os.ReadFile("../../../radio-profiles/prc-117g-anw2c.yaml")
	require.NoError(t, err)
	bag.write(t, evidence.Catalog+"/radio-profiles/prc-117g-anw2c.yaml", []byte("no profile"))
	bag.write(t, evidence.Catalog+"/radio-profiles/our-radio.yaml", bytes.Replace(profile, []byte("prc-117g-anw2c"), []byte("our-radio"), 1))
	all, err := loadCatalog(bag, t.TempDir())
	require.NoError(t, err)
	p, err := plan.Parse(t.Context().Err, "ours.yaml", []byte(`
name: ours
radio: our-radio
topology: vip-lot
size: 64 KiB
treatments: [{name: tcp, label: TCP, protocol: tcp}]
iterations: 2
seed: 1
published:
  source: "a paper, Table 1"
  rows: [{topology: vip-lot, radio: our-radio, treatment: tcp, n: 3, average: 10, maximum: 12, minimum: 8, sd: 1}]
`), all)
	require.NoError(t, err)
	require.Len(t, p.Published, 1)

	bag.write(t, evidence.Catalog+"/radio-profiles/our-radio.yaml", []byte("name: our-radio\n"))
	_, err = loadCatalog(bag, t.TempDir())
	require.ErrorContains(t, err, "the bag's drivers, radio profiles and topologies do not read: catalog/radio-profiles/our-radio.yaml")
	bag.write(t, evidence.Catalog+"/radio-profiles/.hidden.yaml", profile)
	_, err = loadCatalog(bag, t.TempDir())
	require.ErrorContains(t, err, evidence.Catalog+"/radio-profiles/.hidden.yaml: its name is none of a file of a catalog")
}
