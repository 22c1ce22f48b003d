package watch

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stokehq/stoke/cmd/stoke/terminal/terminaltest"
	"github.com/stokehq/stoke/providers"
)

var placed = regexp.MustCompile(`\x1b\[(\d+);1H\x1b\[K`)

// TestWindow shows a hostile run on a pseudo-terminal whose size changes. No line is
// longer than the largest size, the end of the run restores the terminal, and so does
// a key.
func TestWindow(t *testing.T) {
	for _, leaves := range []string{"end", "key", "context"} {
		t.Run(leaves, func(t *testing.T) { testWindow(t, leaves) })
	}
}

func testWindow(t *testing.T, leaves string) {
	person, program := terminaltest.Open(t)
	resize := func(columns, rows uint16) {
		if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Fatal(err)
		}
	}
	resize(80, 24)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	var out screenText
	go out.read(person)

	r := running(20)
	random := rand.New(rand.NewPCG(7, 8))
	for i := range 300 {
		r.lines = append(r.lines, providers.RunLine{Role: hostile[random.IntN(len(hostile))], Text: fmt.Sprint(i) + hostile[random.IntN(len(hostile))]})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan map[string]providers.RunStatus, 1)
	go func() {
		ended <- Show(ctx, Options{Sources: []Source{r.source("a")}, Clean: plain, In: program, Out: program, Color: true})
	}()
	out.await(t, "\x1b[24;1H") // the line of the keys
	check(t, out.take(), 80, 24)
	resize(200, 60)
	out.await(t, "\x1b[60;1H")
	check(t, out.take(), 200, 60)
	resize(30, 8)
	out.await(t, "\x1b[2J")
	if _, err := person.WriteString("?"); err != nil {
		t.Fatal(err)
	}
	out.await(t, "stoke watch")
	switch leaves {
	case "end":
		r.set("succeeded", nil)
		close(r.done)
	case "key":
		out.take()
		if _, err := person.WriteString("?"); err != nil {
			t.Fatal(err)
		}
		out.await(t, "all roles")
		if _, err := person.WriteString("q"); err != nil {
			t.Fatal(err)
		}
	case "context":
		cancel()
	}
	last := <-ended
	out.await(t, leave)
	if leaves == "end" && last["a"].Phase != "succeeded" {
		t.Errorf("the last status is %+v", last)
	}
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	if before.Lflag != after.Lflag || before.Iflag != after.Iflag {
		t.Error("the terminal is not restored")
	}
}

// check checks each line that was placed on a window.
func check(t *testing.T, text string, columns, rows int) {
	t.Helper()
	at := placed.FindAllStringSubmatchIndex(text, -1)
	if len(at) < 5 {
		t.Fatalf("only %d lines: %q", len(at), text)
	}
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		line, _, _ := strings.Cut(text[m[1]:end], "\x1b[?2026l")
		if row, _ := strconv.Atoi(text[m[2]:m[3]]); row < 1 || row > rows {
			t.Errorf("row %d of %d", row, rows)
		}
		if visible(line) > columns || strings.ContainsAny(withoutColors(line), "\x1b\a\b\r\n\t") {
			t.Errorf("%d columns of %d: %q", visible(line), columns, line)
		}
	}
}

// screenText is the text that a program wrote on a terminal.
type screenText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screenText) read(person *os.File) {
	b := make([]byte, 64<<10)
	for {
		n, err := person.Read(b)
		s.mu.Lock()
		s.b.Write(b[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screenText) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.b.String()
	s.b.Reset()
	return text
}

func (s *screenText) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		got := s.b.String()
		s.mu.Unlock()
		if strings.Contains(got, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never on the screen: %q, only %.3000q", text, got)
		}
	}
}
