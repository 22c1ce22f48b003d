package program

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// modeVariable makes the test binary one of the programs below.
const modeVariable = "PROGRAM_TEST"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		program, ok := programs()[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no program", mode)
			os.Exit(99)
		}
		program()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func isRank(n string) bool { return os.Getenv("RANK") == n }

// sleep sleeps until a signal ends the process.
func sleep() { time.Sleep(time.Hour) }

// detach starts a process in a session of its own, which this one does not wait
// for.
func detach(environment []string, command ...string) int {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environment, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
	return cmd.Process.Pid
}

const deaf = `trap "" TERM; while :; do sleep 1000; done`

// programs are people's programs as they should not be.
func programs() map[string]func() {
	return map[string]func(){
		"environment": func() {
			text, err := json.Marshal(map[string]any{"args": os.Args[1:], "environment": os.Environ()})
			if err != nil {
				panic(err)
			}
			os.WriteFile("environment-"+os.Getenv("RANK"), text, 0o600)
			in, err := os.Readlink("/proc/self/fd/0")
			fmt.Println("input", in, err, "group", syscall.Getpgrp() == os.Getpid())
		},
		"deaf": func() {
			signal.Ignore(syscall.SIGTERM)
			fmt.Println("ready")
			sleep()
		},
		"polite": func() {
			asked := make(chan os.Signal, 1)
			signal.Notify(asked, syscall.SIGTERM)
			fmt.Println("ready")
			<-asked
			os.WriteFile(filepath.Join(os.Getenv("STOKE_CHECKPOINT_DIR"), "last.pt"), []byte("x"), 0o600)
			fmt.Println(`stoke: {"checkpoint": "last.pt"}`)
		},
		"child of a shell": func() { // which the signal ends at once
			if os.Getenv("CHILD") == "" {
				self, _ := os.Executable()
				os.Setenv("CHILD", "1")
				if err := syscall.Exec("/bin/sh", []string{"sh", "-c", self + "; true"}, os.Environ()); err != nil {
					panic(err)
				}
			}
			asked := make(chan os.Signal, 10)
			signal.Notify(asked, syscall.SIGTERM)
			fmt.Println("ready")
			<-asked
			programs()["slow"]()
			os.WriteFile(filepath.Join(os.Getenv("STOKE_CHECKPOINT_DIR"), "last.pt"), []byte("x"), 0o600)
			fmt.Printf("stoke: {\"checkpoint\": \"last.pt\", \"signals\": %d}\n", 1+len(asked))
		},
		"daemon": func() { // whose child tidies up when it is asked to end
			if os.Getenv("CHILD") == "" {
				self, _ := os.Executable()
				detach(append(os.Environ(), "CHILD=1"), self)
				programs()["slow"]()
				return
			}
			asked := make(chan os.Signal, 1)
			signal.Notify(asked, syscall.SIGTERM)
			os.WriteFile("go", nil, 0o600)
			<-asked
			os.WriteFile("tidy", nil, 0o600)
		},
		"sleep": func() {
			fmt.Println("ready")
			sleep()
		},
		"forks": func() { // in its group, in a session of its own, and without any environment
			inside := exec.Command("sh", "-c", deaf)
			inside.Start()
			fmt.Println(inside.Process.Pid)
			fmt.Println(detach(os.Environ(), "sh", "-c", deaf))
			fmt.Println(detach([]string{"PATH=" + os.Getenv("PATH")}, "sh", "-c", deaf))
		},
		"orphan": func() { // a process whose parent and which itself ends while the rank goes on
			exec.Command("sh", "-c", "(sleep 0; echo $$ > orphan) &").Run()
			fmt.Println("ready")
			sleep()
		},
		"prints": func() {
			line := strings.Repeat("x", 1023) + "\n"
			for range 64 << 10 {
				os.Stdout.WriteString(line)
			}
			fmt.Fprintln(os.Stderr, "the end")
		},
		"one line": func() {
			part := strings.Repeat("\x1b[31mX\x1b]0;title\x07\x1b[2J\x00", 1000)
			for range 200 {
				os.Stdout.WriteString(part)
			}
			os.Exit(3)
		},
		"one hangs": func() {
			if !isRank("0") {
				sleep()
			}
			fmt.Println("done")
		},
		"crashes": func() {
			if isRank("1") {
				fmt.Fprintln(os.Stderr, "Traceback (most recent call last):\nImportError: No module named 'torch'")
				os.Exit(1)
			}
			sleep()
		},
		"slow": func() {
			for {
				if _, err := os.Stat("go"); err == nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		},
		"closes": func() {
			os.Stdout.Close()
			os.Stderr.Close()
			os.Stdin.Close()
			os.WriteFile(os.Getenv("STOKE_METRICS_FILE"), []byte(`{"step": 1, "loss": 0.5}`), 0o600) // no line break
		},
		"opens": func() {
			for n := range 10_000 {
				if _, err := os.Open("/dev/null"); err != nil {
					fmt.Println("opened", n, "files:", err)
					os.Exit(24)
				}
			}
			fmt.Println("opened all files")
			os.Exit(24)
		},
		"half a checkpoint": func() {
			dir := os.Getenv("STOKE_CHECKPOINT_DIR")
			write := func(name string) {
				os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
				os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644)
			}
			write("step-1/model")
			write("step-1/.complete")
			write("step-2.pt")
			fmt.Println(`stoke: {"checkpoint": "step-2.pt", "loss": 1}`)
			write("step-3/model")
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			sleep()
		},
		"talks badly": func() {
			file, _ := os.OpenFile(os.Getenv("STOKE_METRICS_FILE"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			for range 100 {
				fmt.Fprintln(file, "loss 3")
			}
			fmt.Fprintln(file, `{"loss": 3}`)
			fmt.Println(`stoke: {"checkpoint": "/etc/passwd"}`)
			fmt.Println("stoke: " + strings.Repeat("x", lineBytes))
			fmt.Println(`not for stoke: {"loss": 4}`)
			fmt.Fprintln(os.Stderr, `stoke: {"loss": 5}`)
		},
		"segfault": func() {
			signal.Reset()
			syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			sleep()
		},
		"shell": func() {
			if err := syscall.Exec("/bin/sh", []string{"sh", "-c", "sh -c 'kill -9 $$'; exit $?"}, os.Environ()); err != nil {
				panic(err)
			}
		},
		"agent": runAgent,
	}
}

// runAgent is a process that runs a generation and is killed.
func runAgent() {
	var s Spec
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		panic(err)
	}
	g, err := Start(s, func(Event) {})
	if err != nil {
		panic(err)
	}
	for len(g.Tail(0)) < 3 {
		time.Sleep(time.Millisecond)
	}
	json.NewEncoder(os.Stdout).Encode(map[string]any{"ranks": g.PIDs(), "lines": g.Tail(0)})
	g.Wait()
}
