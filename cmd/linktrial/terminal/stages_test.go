package terminal

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// What takes no time is not spoken of; what takes long says how long it still takes.
func TestLateStages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	synctest.Test(t, func(*testing.T) {
		s := NewLateStages(log, 2*time.Second)
		s.Stage("short", 0)
		time.Sleep(time.Second)
		s.Stage("short", 0.9)
		s.Stage("long", 0)
		for i := range 5 {
			time.Sleep(10 * time.Second)
			s.Stage("long", float64(i+1)/10)
		}
		s.Finish()
	})
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = "long\nlong   10 %  about 90 s left\nlong   40 %  about 60 s left\n"
	if string(got) != want {
		t.Errorf("written\n%sexpected\n%s", got, want)
	}
}
