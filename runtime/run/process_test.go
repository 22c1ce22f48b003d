package run

import (
	"os"
	"os/exec"
	"testing"
)

func TestAliveGoesByPIDAndStart(t *testing.T) {
	self, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if !self.Alive() {
		t.Error("this process is not alive")
	}
	other := self
	other.Start++
	if other.Alive() {
		t.Error("another start time is taken for this process")
	}
	other = self
	other.Boot = "another"
	if other.Alive() {
		t.Error("another boot is taken for this one")
	}
	if (Process{}).Alive() {
		t.Error("no process is alive")
	}
}

func TestAZombieIsDead(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Identify(cmd.Process.Pid)
	if err == nil {
		for p.Alive() { // ends by itself; unreaped until Wait
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
