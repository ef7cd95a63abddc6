package telemetrysource

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// daemon starts a real service in the foreground and ends it with the test.
func daemon(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path = filepath.Join("/usr/sbin", name)
		if _, err := os.Stat(path); err != nil {
			t.Skipf("needs %s: scripts/install-deps test", name)
		}
	}
	c := exec.Command(path, args...)
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		if t.Failed() {
			t.Logf("%s: %s", name, out.String())
		}
	})
}

func freePort(t *testing.T, network string) int {
	t.Helper()
	if network == "udp" {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return port(t, c.LocalAddr())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return port(t, l.Addr())
}

// until reads the source again until it says the word.
func until(t *testing.T, n Node, s Source, word string) {
	t.Helper()
	var got string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if got = check(t, n, s); strings.Contains(got, word) {
			return
		}
	}
	t.Errorf("for 30 s it said\n%s\nwant\n%s", got, word)
}

// Net-SNMP's agent answers versions 2c and 3, and refuses a wrong secret.
func TestRealSNMP(t *testing.T) {
	dir := t.TempDir()
	at := freePort(t, "udp")
	conf := filepath.Join(dir, "snmpd.conf")
	text := fmt.Sprintf("agentAddress udp:127.0.0.1:%d\nrocommunity public\ncreateUser reader SHA-256 authsecret1 AES privsecret1\nrouser reader priv\nsysName the-radio\nsysServices 72\n", at)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SNMP_PERSISTENT_DIR", dir)
	daemon(t, "snmpd", "-f", "-C", "-c", conf, "-Lo", "-I", "-smux")
	source := func(s *SNMPAccess, values ...Value) Source {
		return Source{Name: "radio", Kind: KindSNMP, IntervalNS: 1, Host: "127.0.0.1", Port: at, Settings: &SNMP{s}, Values: values}
	}
	services := Value{Name: "services", Place: "1.3.6.1.2.1.1.7.0", Scale: 0.5}
	two := &SNMPAccess{Version: "2c", Community: "public"}
	until(t, Node{}, source(two, services), "radio services=36 ")

	secrets := map[string]string{"A": "authsecret1", "P": "privsecret1", "WRONG": "other-secret"}
	env := func(name string) string { return secrets[name] }
	three := SNMPAccess{Version: "3", User: "reader", Auth: "sha256", AuthEnv: "A", Privacy: "aes", PrivacyEnv: "P"}
	until(t, Node{Env: env}, source(&three, services), "radio services=36 ")

	wrong := three
	wrong.AuthEnv = "WRONG"
	got := check(t, Node{Env: env}, source(&wrong, services))
	if !strings.Contains(got, "radio ! SNMP at 127.0.0.1:") || strings.Contains(got, "other-secret") {
		t.Errorf("a wrong secret: %s", got)
	}
	got = check(t, Node{}, source(two, Value{Name: "snr", Place: "1.3.6.1.4.1.32473.7.2.1", Scale: 1}))
	if !strings.Contains(got, "snr (1.3.6.1.4.1.32473.7.2.1) at 127.0.0.1:") || !strings.Contains(got, "the radio has no such object") {
		t.Errorf("an object that is not there: %s", got)
	}
	got = check(t, Node{}, source(two, Value{Name: "name", Place: "1.3.6.1.2.1.1.5.0", Scale: 1}))
	if !strings.Contains(got, `expected a number, found the text "the-radio"`) {
		t.Errorf("a text: %s", got)
	}
}

// A real gpsd, fed by a receiver that speaks NMEA over TCP.
func TestRealGPSD(t *testing.T) {
	receiver, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := receiver.Accept()
			if err != nil {
				return
			}
			for i := 0; ; i++ {
				// A moment later each time, as a receiver tells it; from the NMEA 0183 format.
				line := fmt.Sprintf("GPRMC,1200%02d.00,A,3900.74074,N,07706.00000,W,0.50,90.0,010326,,,A", i%60)
				fix := fmt.Sprintf("GPGGA,1200%02d.00,3900.74074,N,07706.00000,W,1,08,1.0,80.5,M,-33.0,M,,", i%60)
				if _, err := io.WriteString(c, sentence(fix)+sentence(line)); err != nil {
					break
				}
				time.Sleep(200 * time.Millisecond)
			}
			c.Close()
		}
	}()
	t.Cleanup(func() { receiver.Close(); <-done })
	at := freePort(t, "tcp")
	daemon(t, "gpsd", "-N", "-n", "-b", "-S", fmt.Sprint(at), "tcp://"+receiver.Addr().String())
	until(t, Node{}, Source{Name: "gps", Kind: KindGPSD, IntervalNS: 1, Host: "127.0.0.1", Port: at}, "gps latitude=39.0123 ° longitude=-77.1 ° elevation=80.5 m")
}

// sentence is a line of NMEA 0183 with its checksum.
func sentence(body string) string {
	sum := byte(0)
	for i := range len(body) {
		sum ^= body[i]
	}
	return fmt.Sprintf("$%s*%02X\r\n", body, sum)
}

// A gpsd without a receiver says so at once.
func TestRealGPSDWithoutReceiver(t *testing.T) {
	at := freePort(t, "tcp")
	daemon(t, "gpsd", "-N", "-n", "-S", fmt.Sprint(at), "-F", filepath.Join(t.TempDir(), "control.sock"))
	until(t, Node{}, Source{Name: "gps", Kind: KindGPSD, IntervalNS: 1, Host: "127.0.0.1", Port: at}, "has no receiver")
}
