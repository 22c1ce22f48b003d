package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// address is one that is free.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", programtest.Loopback()+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// byHand starts one role of a run without a supervisor.
func byHand(t *testing.T, f run.Folder, args ...string) *exec.Cmd {
	t.Helper()
	return byHandOf(t, f, trainer, args...)
}

func byHandOf(t *testing.T, f run.Folder, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, append(args, "--spec", f.Spec(), "--token-file", f.Token())...)
	cmd.Env = append(os.Environ(), asTrainer+"=1",
		"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true")
	log, err := os.OpenFile(filepath.Join(f.Logs(), args[0]+"-by-hand.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			data, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%s", log.Name(), data[max(0, len(data)-3000):])
		}
	})
	return cmd
}

// TestStaleCoordinatorComesBack stops a coordinator, lets another one take the
// run over and end it, and lets the first one go on: it ends, and nothing that
// it does or has begun is seen.
func TestStaleCoordinatorComesBack(t *testing.T) {
	for _, when := range []string{"while training", "after the end"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			s := long()
			s.Checkpoint.EverySteps = 10
			f := run.Folder(filepath.Join(t.TempDir(), "run"))
			if err := f.Create(s); err != nil {
				t.Fatal(err)
			}
			server := address(t)
			byHand(t, f, "ps", "--index", "0", "--listen", server, "--accounts", accounts(f), "--checkpoints", f.Checkpoints())
			coordinate := func(listen string) *exec.Cmd {
				return byHand(t, f, "coordinator", "--listen", listen, "--state", string(f), "--servers", server)
			}
			work := func(index, coordinator string) *exec.Cmd {
				return byHand(t, f, "worker", "--index", index, "--coordinator", coordinator, "--servers", server, "--accounts", accounts(f), "--threads", "1")
			}
			standing := func() spec.Status {
				var st spec.Status
				if err := run.ReadJSON(f.StatusFile(), &st); err != nil {
					t.Fatal(err)
				}
				return st
			}
			first := address(t)
			stale := coordinate(first)
			work("0", first)
			eventually(t, "the first coordinator has saved something", func() bool { return standing().Saved >= 20 })
			if err := stale.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			before := standing()
			second := address(t)
			next := coordinate(second)
			ended := make(chan error, 1)
			go func() { ended <- stale.Wait() }()
			goOn := func() {
				if err := stale.Process.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
				err := <-ended
				if got := stale.ProcessState.ExitCode(); got != int(spec.EndAsked) {
					t.Errorf("the stale coordinator ended with %d (%v)", got, err)
				}
			}
			if when == "while training" {
				eventually(t, "the second coordinator speaks", func() bool { return standing().Term > before.Term })
				goOn() // its worker and the server are still there
			}
			work("1", second)
			if err := next.Wait(); err != nil {
				t.Fatalf("the second coordinator: %v", err)
			}
			if when == "after the end" {
				goOn()
			}
			st := standing()
			if st.Phase != spec.Succeeded || st.Records != records(s) || st.Term <= before.Term {
				t.Errorf("status %+v", st)
			}
			checkLedger(t, f, s, 1500)
			all, _ := events(t, f.Metrics())
			term := int64(0)
			for i, e := range all {
				if e.Number != int64(i+1) || e.Term < term {
					t.Fatalf("event %d is number %d of term %d, after term %d", i+1, e.Number, e.Term, term)
				}
				term = e.Term
			}
		})
	}
}

// TestAllCheckpointsAreDamaged spoils all checkpoints of a run: it stops, and
// removes nothing. With one of them mended, it goes on from that.
func TestAllCheckpointsAreDamaged(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(string) error{
		"truncated manifest": func(dir string) error { return os.Truncate(filepath.Join(dir, "manifest.json"), 100) },
		"a bit of a part":    func(dir string) error { return flipBit(part(dir)) },
		"a newer version": func(dir string) error {
			path := filepath.Join(dir, "manifest.json")
			return os.WriteFile(path, bytes.Replace(must(os.ReadFile(path)), []byte("{"), []byte(`{"format": 99,`), 1), 0o600)
		},
	} {
		if testing.Short() && name != "a bit of a part" { // the processes do the same after each damage
			continue
		}
		t.Run(name, func(t *testing.T) { stopsWithout(t, spoil) })
	}
}

// flipBit changes one bit in the middle of a file.
func flipBit(path string) error {
	data, err := os.ReadFile(path)
	if err == nil {
		data[len(data)/2] ^= 1
		err = os.WriteFile(path, data, 0o600)
	}
	return err
}

func stopsWithout(t *testing.T, spoil func(checkpoint string) error) {
	t.Helper()
	s := long()
	s.Checkpoint.Keep, s.Checkpoint.EverySteps = 2, 20
	r, s := disturbed(t, s, func(r *trial) bool { return len(saved(r)) > 1 }, killSupervisor)
	before := saved(r)
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.CopyFS(kept, os.DirFS(before[0])); err != nil {
		t.Fatal(err)
	}
	for _, dir := range before {
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
	}
	again := relaunch(t, r.folder)
	again.start()
	st := again.wait()
	if st.Phase != spec.Stopped || st.Cause != spec.CauseCheckpoints || st.Step != 0 && st.Step < 20 {
		again.dump()
		t.Fatalf("status %+v", st)
	}
	if after := saved(r); !slices.Equal(before, after) {
		t.Errorf("checkpoints were %v and are %v", before, after)
	}
	if err := os.RemoveAll(before[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(before[0], os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	last := relaunch(t, r.folder)
	last.start()
	if st := last.wait(); st.Phase != spec.Succeeded || st.Records != records(s) || st.Resumed == 0 {
		last.dump()
		t.Fatalf("status %+v", st)
	}
	checkLedger(t, r.folder, s, 1500)
}

// TestFullDisk gives a run a disk on which one write or another does not fit: it
// ends in a state that it goes on from once there is room, and nothing that it
// then has in its ledger was not trained.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	sizes := []int{100, 400, 1000, 1600}
	switch {
	case testing.Short():
		sizes = []int{100, 700}
	case raceBuild: // race-all
		sizes = []int{100, 150, 400, 700, 1000, 1300, 1600, 2200}
	}
	for _, kilobytes := range sizes {
		t.Run(fmt.Sprintf("%d kB", kilobytes), func(t *testing.T) {
			t.Parallel()
			s := long()
			s.Checkpoint.EverySteps, s.Checkpoint.Keep = 40, 2
			disk := filepath.Join(t.TempDir(), "disk")
			if err := os.Mkdir(disk, 0o700); err != nil {
				t.Fatal(err)
			}
			mount := func(options string) {
				t.Helper()
				if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", disk).CombinedOutput(); err != nil {
					t.Skipf("mount: %v: %s", err, out)
				}
			}
			mount(fmt.Sprintf("size=%dk", kilobytes))
			t.Cleanup(func() { exec.Command("umount", "-l", disk).Run() })
			f := run.Folder(filepath.Join(disk, "run"))
			if err := f.Create(s); err != nil {
				t.Fatal(err)
			}
			r := relaunch(t, f)
			r.start()
			<-r.reaped
			first, err := f.Status()
			if first.Phase == spec.Succeeded {
				t.Skip("it had room")
			}
			if err != nil || first.Phase != spec.Stopped || first.Cause != spec.CauseDisk || !strings.Contains(first.Message, "no space left") {
				r.dump()
				t.Fatalf("on the full disk: %+v, %v", first, err)
			}
			mount("remount,size=200m")
			again := relaunch(t, f)
			again.start()
			st := again.wait()
			if st.Phase != spec.Succeeded || st.Records != records(s) {
				again.dump()
				t.Fatalf("with room: %+v", st)
			}
			checkRecords(t, f, s, 1500)
			t.Logf("%s (%s) at step %d: %s", first.Phase, first.Cause, first.Step, strings.SplitN(first.Message, ";", 2)[0])
		})
	}
}
