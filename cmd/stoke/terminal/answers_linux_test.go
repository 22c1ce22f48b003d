package terminal

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stokehq/stoke/cmd/stoke/terminal/terminaltest"
)

// TestSecretAfterLine types a secret after something that is none: only the
// latter is echoed.
func TestSecretAfterLine(t *testing.T) {
	person, program := terminaltest.Open(t)
	a := NewAnswers(program)
	if _, err := person.WriteString("5\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := a.Line(nil); text != "5" || err != nil {
		t.Fatalf("the line is %q, %v", text, err)
	}
	echoes := func() bool {
		state, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		return state.Lflag&unix.ECHO != 0
	}
	var typed string
	done := make(chan error, 1)
	go func() {
		var err error
		typed, err = a.Secret(nil)
		done <- err
	}()
	for deadline := time.Now().Add(time.Minute); echoes(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what is typed is shown")
		}
	}
	if _, err := person.WriteString("hunter2\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || typed != "hunter2" {
		t.Errorf("the secret is %q, %v", typed, err)
	}
	if !echoes() {
		t.Error("typing stays invisible")
	}
	if _, err := person.WriteString("yes\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := a.Line(nil); text != "yes" || err != nil {
		t.Errorf("the line after it is %q, %v", text, err)
	}
	screen := make([]byte, 1000)
	n, err := person.Read(screen)
	if shown := string(screen[:n]); err != nil || !strings.Contains(shown, "5") || strings.Contains(shown, "hunter2") {
		t.Errorf("the screen shows %q, %v", shown, err)
	}
}
