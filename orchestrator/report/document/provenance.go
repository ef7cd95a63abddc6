package document

import (
	"slices"
	"strconv"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// Format is the version of the report's contents. The same results give the same report within
// a version.
const Format = 1

// provenance is what the report was made from: plan, runs, sheets, profiles, topologies,
// driverTable, and files that were imported, each with its hash.
func provenance(v *report.Analysis) ([]Section, error) {
	ds := v.Dataset
	all := []Fact{{Name: "Format", Value: "Linktrial report, format " + strconv.Itoa(Format)}}
	add := func(name, value string, mono bool) {
		if value = wording.Clean(value); value != "" {
			all = append(all, Fact{Name: name, Value: value, Mono: mono})
		}
	}
	add("Campaign", ds.Campaign, true)
	add("Created", momentOf(ds.Created), false)
	add("Plan", ds.Plan, false)
	var hashes, seeds spread
	n := sheetsOf(v, func(run int, _ *report.Run, s *runsheet.Sheet) {
		hashes.add(run, s.PlanHash)
		seeds.add(run, strconv.FormatUint(s.Seed, 10))
	})
	add("SHA-256 of the plan", hashes.text(n, len(ds.Runs)), true)
	add("Seed", seeds.text(n, len(ds.Runs)), true)
	return chapterOf("provenance", "Provenance", slices.Concat(factsOf(all), paragraphs(provenanceText(v))),
		partOf("provenance-runs", "Runs and their sheets", sheetHashes(v)),
		partOf("provenance-digests", "Profiles, topologies and drivers", profileHashes(v), driverDigests(v)),
		partOf("provenance-imported", "Imported files", importedFiles(v))), nil
}

// provenanceText says what of the report can be checked with what.
func provenanceText(v *report.Analysis) string {
	if len(v.Dataset.Runs) == 0 {
		return ""
	}
	text := "This report follows from the results of these runs alone: the same results give the same report."
	if slices.ContainsFunc(v.Dataset.Runs, func(r report.Run) bool { return r.Place == journal.PlaceVirtual }) {
		text += " Start and end of runs in virtual time are by the lab's clock."
	}
	return text
}

func sheetHashes(v *report.Analysis) []Block {
	g := grid{caption: "Runs, and the run sheets that they followed", heads: []string{"Run", "Identity", "State", "Started", "Ended", "SHA-256 of the run sheet"},
		numbers: []string{"Run"}, mono: []string{"Identity", "SHA-256 of the run sheet"}}
	for i := range v.Dataset.Runs {
		r := &v.Dataset.Runs[i]
		g.add(strconv.Itoa(i+1), r.ID, r.State, momentOf(r.Started), momentOf(r.Ended), r.SheetHash)
	}
	return g.blocks()
}

func profileHashes(v *report.Analysis) []Block {
	all := len(v.Dataset.Runs)
	g := grid{caption: "Radio profiles and topologies", heads: []string{"Kind", "Name", "SHA-256 of the file", "Runs"}, mono: []string{"Name", "SHA-256 of the file"}}
	for _, x := range radiosOf(v) {
		kind := map[bool]string{false: "radio profile", true: "radio profile, second radio"}[x.second]
		g.add(kind, x.profile.Name, x.profile.Hash, someRuns(x.runs, all))
	}
	for _, x := range topologiesOf(v) {
		g.add("topology", x.of.Name, x.of.Hash, someRuns(x.runs, all))
	}
	return g.blocks()
}

// driverDigests are the drivers that the sheets accept, and those that nodes had.
func driverDigests(v *report.Analysis) []Block {
	used := protocolsOf(v)
	var all nodeLines
	eachNode(v, func(run int, node string, p *journal.Provenance) {
		for _, d := range p.Drivers {
			if slices.Contains(used, d.Name) {
				all.add(run, node, d.Name, d.Version, d.Digest, d.SHA256)
			}
		}
	})
	accepted := map[string][]string{} // by digest: protocols
	sheetsOf(v, func(_ int, _ *report.Run, s *runsheet.Sheet) {
		for i := range s.Treatments {
			t := &s.Treatments[i]
			for _, digest := range t.Digests {
				accepted[digest] = append(accepted[digest], t.Protocol)
			}
			for _, via := range t.Via {
				for _, digest := range via.Digests {
					accepted[digest] = append(accepted[digest], via.Protocol)
				}
			}
		}
	})
	g := grid{caption: "Drivers", heads: []string{"Driver", "Version", "Digest of the driver", "SHA-256 of the program", "The sheets accept it", "Nodes", "Runs"}, mono: []string{"Digest of the driver", "SHA-256 of the program"}}
	for i, cells := range all.cells {
		accepts := ""
		if len(accepted) > 0 {
			accepts = map[bool]string{true: "yes", false: "no"}[slices.Contains(accepted[cells[2]], cells[0])]
		}
		g.add(append(slices.Clone(cells), accepts, strings.Join(all.nodes[i], ", "), someRuns(all.runs[i], len(v.Dataset.Runs)))...)
	}
	return g.blocks()
}

func importedFiles(v *report.Analysis) []Block {
	g := grid{caption: "Files of other orchestrators that runs were imported from", heads: []string{"Campaign", "File", "Origin", "Imported by", "Imported at", "SHA-256 of the file"}, mono: []string{"Campaign", "SHA-256 of the file"}}
	seen := map[string]bool{}
	for i := range v.Dataset.Runs {
		if x := v.Dataset.Runs[i].Imported; x != nil && !seen[x.Campaign] {
			seen[x.Campaign] = true
			g.add(x.Campaign, x.File, x.Origin, x.By, momentOf(x.At), x.SHA256)
		}
	}
	return g.blocks()
}
