package stress_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/internal/process/processtest"
	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest/stress"
)

// faultVariable has this program be a driver that carries nothing, with a fault.
const faultVariable = "LINKTRIAL_STRESS_FAULT"

func init() {
	if fault := os.Getenv(faultVariable); fault != "" {
		faulty(fault)
		os.Exit(contract.ExitOK)
	}
}

// faulty says what a sound driver would say, until its fault.
func faulty(fault string) {
	var p contract.Parameters
	if json.NewDecoder(os.Stdin).Decode(&p) != nil {
		os.Exit(contract.ExitFailed)
	}
	say := func(event string) { fmt.Printf(`{"event":%s}`+"\n", event) }
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	say(`"ready","info":{"implementation":"none"}`)
	if fault == string(p.Role)+" crashes" {
		signal.Reset()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		time.Sleep(time.Hour)
	}
	if p.Role == contract.RoleServer {
		<-stop
		if fault == "server panics when it stops" {
			panic("stopped")
		}
		if fault == "server hangs" {
			time.Sleep(time.Hour)
		}
		return
	}
	id := fmt.Sprintf(`"transfer":%q`, p.Transfer.ID)
	say(`"connected",` + id + `,"connect_ns":1`)
	if fault == "a report" {
		fmt.Fprintln(os.Stderr, "WARNING: DATA RACE")
		os.Exit(66)
	}
	if fault == "an error" || p.Transfer.SizeBytes > 1<<20 {
		if fault != "an error" {
			<-stop
		}
		say(`"error",` + id + `,"code":"reset","message":"gone"`)
		os.Exit(contract.ExitFailed)
	}
	say(`"result",` + id + `,"result":{"size_bytes":` + fmt.Sprint(p.Transfer.SizeBytes) + `,"elapsed_ns":1,"digest":"` + strings.Repeat("0", 64) + `"}`)
}

// TestFaultsAreFound: each kind of fault is counted, and a driver without one is not.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for fault, c := range map[string]struct{ crash, failure string }{
		"none":                        {},
		"client crashes":              {crash: "client: exit code 2|client: signal segmentation fault"},
		"server crashes":              {crash: "server: exit code 2|server: signal segmentation fault"},
		"server panics when it stops": {crash: "panic: stopped"},
		"server hangs":                {crash: "server: it had not ended in time"},
		"a report":                    {crash: "client: exit code 66"},
		"an error":                    {failure: "reset (gone)"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			manifest := "name: faulty\ntitle: Faulty\nsummary: a driver with a fault\nversion: 1.0.0\ncontract: 2\ncommand: [./faulty]\nnetwork: udp\n"
			processtest.WriteExecutable(t, filepath.Join(dir, "driver.yaml"), []byte(manifest))
			processtest.WriteExecutable(t, filepath.Join(dir, "faulty"), fmt.Appendf(nil, "#!/bin/sh\n%s='%s' exec %q\n", faultVariable, fault, self))
			o := stress.Options{Transfers: 8, Clients: 2, Round: 4}
			if fault == "server hangs" {
				o.Patience = 3 * time.Second
			}
			r, err := stress.Run(t.Context(), stress.Way{Ends: stress.Driver{Dir: dir}}, o)
			if err != nil {
				t.Fatal(err)
			}
			for what, x := range map[string]struct {
				count int
				texts []string
				want  string
			}{"crash": {r.Crashed, r.Crashes, c.crash}, "failure": {r.Failed, r.Failures, c.failure}} {
				if x.want == "" && x.count > 0 || x.want != "" && !says(strings.Join(x.texts, "\n"), x.want) {
					t.Errorf("%d of kind %s, %q; expected %q", x.count, what, x.texts, x.want)
				}
			}
			if fault == "none" && (r.Transfers != 8 || r.Listeners == 0) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// says reports whether a text has one of the alternatives, which a bar separates.
func says(text, alternatives string) bool {
	for a := range strings.SplitSeq(alternatives, "|") {
		if strings.Contains(text, a) {
			return true
		}
	}
	return false
}
