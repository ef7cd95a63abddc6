package runner

import (
	"strings"
	"sync"
	"time"

	"linktrial/executor"
)

// What a driver may write on its standard error before it counts as a flood.
const (
	logBytesPerSecond = 1 << 20
	logBytesBurst     = 16 << 20
)

// Log keeps the end of a driver's standard error, and ends a driver that floods
// it. Safe for concurrent use.
type Log struct {
	kill func()

	mu    sync.Mutex
	tail  []byte
	level float64 // bytes that may still come at once
	at    time.Time
	flood bool
}

// NewLog returns an empty log; kill is called, once, when it is flooded.
func NewLog(kill func()) *Log {
	return &Log{kill: kill, level: logBytesBurst, at: time.Now()}
}

// Write takes what the driver wrote. It never fails.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	now := time.Now()
	l.level = min(logBytesBurst, l.level+logBytesPerSecond*now.Sub(l.at).Seconds()) - float64(len(b))
	l.at = now
	l.keep(b)
	first := l.level < 0 && !l.flood
	l.flood = l.flood || first
	l.mu.Unlock()
	if first {
		l.kill()
	}
	return len(b), nil
}

// Note adds a line of the runner's own.
func (l *Log) Note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.tail); n > 0 && l.tail[n-1] != '\n' {
		line = "\n" + line
	}
	l.keep([]byte(line + "\n"))
}

func (l *Log) keep(b []byte) {
	l.tail = append(l.tail, b...)
	if over := len(l.tail) - executor.MaxLog; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
}

// Flooded reports whether the log was flooded.
func (l *Log) Flooded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flood
}

// String is the end of the log, at most [executor.MaxLog] bytes.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.ToValidUTF8(string(l.tail), "\uFFFD")
}
