package evidence

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// entity is one object of the metadata, flattened JSON-LD as RO-Crate 1.1 has it
// (https://w3id.org/ro/crate/1.1). Keys are written in the order of their names.
type entity map[string]any

func ref(id string) entity { return entity{"@id": id} }

const (
	crateSpec = "https://w3id.org/ro/crate/1.1"
	rootID    = "./"
	software  = "#linktrial"
	noLicence = "Linktrial does not state a licence: whoever publishes this evidence has to state one"
)

// crate is ro-crate-metadata.json. Its files are those of the payload, whose folder is the
// crate's root.
func crate(x *Bundle, files []file) (string, error) {
	e := &x.Evidence
	graph := []entity{
		{"@id": "ro-crate-metadata.json", "@type": "CreativeWork", "conformsTo": ref(crateSpec), "about": ref(rootID)},
		root(x, files),
		{"@id": "#no-licence", "@type": "CreativeWork", "name": "No licence stated", "description": noLicence},
		{"@id": software, "@type": "SoftwareApplication", "name": "Linktrial", "version": e.Version, "softwareVersion": e.Version},
	}
	for i := range files {
		graph = append(graph, fileEntity(&files[i]))
	}
	for i := range e.Runs {
		graph = append(graph, runEntity(x, &e.Runs[i]))
	}
	for _, p := range x.People {
		graph = append(graph, entity{"@id": personID(p), "@type": "Person", "name": p, "description": "gave commands to runs or marked attempts (store/run_commands.jsonl, store/attempt_marks.jsonl)"})
	}
	if p := e.PackedBy; p != "" && !slices.Contains(x.People, p) {
		graph = append(graph, entity{"@id": personID(p), "@type": "Person", "name": p, "description": "had this evidence packed"})
	}
	b, err := json.MarshalIndent(entity{"@context": crateSpec + "/context", "@graph": graph}, "", "  ")
	return string(b) + "\n", err
}

func personID(name string) string { return "#person-" + url.PathEscape(name) }

// root is the data set: all files, the plan and the report first.
func root(x *Bundle, files []file) entity {
	e := &x.Evidence
	parts, mentions := []entity{}, []entity{}
	for i := range files {
		parts = append(parts, ref(crateID(files[i].name)))
	}
	for i := range e.Runs {
		mentions = append(mentions, ref("#run-"+e.Runs[i].ID))
	}
	text := fmt.Sprintf("Everything that the report of campaign %s of plan %s rests on: plan, run sheets, journals of all nodes, commands and marks of people, exported results.", e.Campaign, e.Plan)
	if !e.Complete {
		text += " A run was under way when it was packed."
	}
	for _, m := range e.Missing {
		text += " Missing: " + line(m) + "."
	}
	r := entity{
		"@id": rootID, "@type": "Dataset", "identifier": e.Campaign, "name": "Evidence of the campaign " + line(x.Name), "description": text,
		"datePublished": e.Packed.Format(time.RFC3339), "license": ref("#no-licence"), "hasPart": parts, "mentions": mentions,
	}
	if e.PackedBy != "" {
		r["creator"] = ref(personID(e.PackedBy))
	}
	return r
}

// crateID is the identity of a file of the payload: its path from the crate's root.
func crateID(name string) string { return strings.TrimPrefix(name, Payload+"/") }

func fileEntity(f *file) entity {
	x := entity{"@id": crateID(f.name), "@type": "File", "name": crateID(f.name), "encodingFormat": f.media, "contentSize": fmt.Sprint(f.bytes), "sha256": f.sha256}
	if f.title != "" {
		x["description"] = f.title
	}
	return x
}

// runEntity is a run: what made its journals of its sheet.
func runEntity(x *Bundle, r *Run) entity {
	journals := []entity{}
	for _, n := range r.Nodes {
		if n.Records > 0 { // else there is no file
			journals = append(journals, ref(crateID(JournalFile(r.ID, n.Name))))
		}
	}
	out := entity{
		"@id": "#run-" + r.ID, "@type": "CreateAction", "name": "Run " + r.ID, "description": line(x.Sheets[r.ID]), "instrument": ref(software),
		"object": []entity{ref(crateID(Plan)), ref(crateID(SheetFile(r.ID)))}, "result": journals, "actionStatus": ref(actionStatus(r.State)),
	}
	if t := x.Times[r.ID]; !t.Began.IsZero() {
		out["startTime"] = t.Began.UTC().Format(time.RFC3339Nano)
		if !t.Ended.IsZero() {
			out["endTime"] = t.Ended.UTC().Format(time.RFC3339Nano)
		}
	}
	return out
}

// actionStatus is the state of a run in the words of schema.org.
func actionStatus(state string) string {
	switch state {
	case "completed":
		return "http://schema.org/CompletedActionStatus"
	case "aborted", "stopped":
		return "http://schema.org/FailedActionStatus"
	case "queued", "waiting":
		return "http://schema.org/PotentialActionStatus"
	}
	return "http://schema.org/ActiveActionStatus"
}
