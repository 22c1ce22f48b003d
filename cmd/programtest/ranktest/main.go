package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// rankParameters are the parameters of the program.
type rankParameters struct {
	Steps    int     `json:"steps"`
	Pause    float64 `json:"pause"`   // seconds of a step
	Every    int     `json:"every"`   // steps between two checkpoints; 0: none is made
	Fail     int     `json:"fail"`    // step at which rank Failing ends with 3; 0: none
	Failing  int     `json:"failing"` //
	Once     string  `json:"once"`    // file that says that it has failed
	Hold     string  `json:"hold"`    // file without which no rank makes the last step; "": they do not wait
	Serve    bool    `json:"serve"`   // processes of the role ps never end
	Leave    string  `json:"leave"`   // seconds that a process sleeps which leaves the rank
	Stubborn bool    `json:"stubborn"`
}

// rank is one process of the program.
type rank struct {
	rankParameters
	number, world int
	peers         []net.Conn // rank 0: of all others, in no order; others: of rank 0
	sum, step     int
}

func main() {
	r := &rank{number: number("RANK"), world: number("WORLD_SIZE")}
	text, err := os.ReadFile(os.Getenv("STOKE_PARAMETERS"))
	if err == nil {
		err = json.Unmarshal(text, &r.rankParameters)
	}
	r.check(err)
	if r.Stubborn {
		signal.Ignore(syscall.SIGTERM)
	}
	if r.Leave != "" { // its group, its environment and its parent
		left := exec.Command("sh", "-c", "setsid sleep "+r.Leave+" >/dev/null 2>&1 &")
		left.Env = []string{"PATH=" + os.Getenv("PATH")}
		r.check(left.Run())
	}
	r.note()
	if r.Serve && os.Getenv("JOB_NAME") == "ps" {
		fmt.Println("serving")
		for {
			time.Sleep(time.Hour) // select {} is a deadlock where the program is built without cgo
		}
	}
	if from := os.Getenv("STOKE_RESUME_FROM"); from != "" {
		text, err := os.ReadFile(from)
		r.check(err)
		_, err = fmt.Sscan(string(text), &r.step, &r.sum)
		r.check(err)
		fmt.Printf("resumes at step %d\n", r.step)
	}
	r.check(r.meet())
	for r.step < r.Steps {
		time.Sleep(time.Duration(r.Pause * float64(time.Second)))
		if r.Hold != "" && r.step == r.Steps-1 {
			awaitFile(r.Hold)
		}
		r.check(r.add())
		r.step++
		if r.number == 0 {
			fmt.Printf("stoke: {\"step\": %d, \"loss\": %g, \"sum\": %d, \"world\": %d}\n", r.step, 1/float64(1+r.step), r.sum, r.world)
			if r.Every > 0 && r.step%r.Every == 0 {
				r.check(r.save())
			}
		}
		if r.step == r.Fail && r.number == r.Failing && r.mayFail() {
			fmt.Fprintln(os.Stderr, "a mistake in the program")
			os.Exit(3)
		}
	}
}

// awaitFile waits until a test has made a file.
func awaitFile(path string) {
	for _, err := os.Stat(path); err != nil; _, err = os.Stat(path) {
		time.Sleep(10 * time.Millisecond)
	}
}

// mayFail reports whether the rank is to fail: only once where there is a file for it.
func (r *rank) mayFail() bool {
	if r.Once == "" {
		return true
	}
	file, err := os.OpenFile(r.Once, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		file.Close()
	}
	return err == nil
}

// note writes down that the rank was started in this generation, where a test wants
// it.
func (r *rank) note() {
	path := os.Getenv("TEST_STARTS")
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	r.check(err)
	fmt.Fprintf(file, "%s rank %d of %d: process %d, restart %s, job %s %s\n", os.Getenv("MASTER_PORT"), r.number, r.world, os.Getpid(),
		os.Getenv("TORCHELASTIC_RESTART_COUNT"), os.Getenv("JOB_NAME"), os.Getenv("TASK_INDEX"))
	file.Close()
}

// meet connects the ranks.
func (r *rank) meet() error {
	address := net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT"))
	if r.number > 0 {
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			c, err := net.Dial("tcp", address)
			if err == nil {
				r.peers = []net.Conn{c}
				return nil
			}
			if time.Since(began) > time.Minute {
				return err
			}
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for len(r.peers) < r.workers()-1 {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		r.peers = append(r.peers, c)
	}
	return l.Close()
}

// workers returns the number of ranks that add up, without the role ps.
func (r *rank) workers() int {
	if r.Serve {
		hosts, n := os.Getenv("WORKER_HOSTS"), 1
		for _, c := range hosts {
			if c == ',' {
				n++
			}
		}
		return n
	}
	return r.world
}

// add adds one of each rank to the sum of all.
func (r *rank) add() error {
	if r.number > 0 {
		if _, err := fmt.Fprintln(r.peers[0], 1); err != nil {
			return err
		}
		line, err := bufio.NewReader(r.peers[0]).ReadString('\n')
		if err == nil {
			_, err = fmt.Sscan(line, &r.sum)
		}
		return err
	}
	r.sum++
	for _, c := range r.peers {
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
			return err
		}
		r.sum++
	}
	for _, c := range r.peers {
		if _, err := fmt.Fprintln(c, r.sum); err != nil {
			return err
		}
	}
	return nil
}

// save writes a checkpoint, and reports it once it is complete.
func (r *rank) save() error {
	name := fmt.Sprintf("step-%d", r.step)
	path := filepath.Join(os.Getenv("STOKE_CHECKPOINT_DIR"), name)
	if err := os.WriteFile(path, fmt.Appendf(nil, "%d %d\n", r.step, r.sum), 0o600); err != nil {
		return err
	}
	fmt.Printf("stoke: {\"checkpoint\": %q}\n", name)
	return nil
}

func (r *rank) check(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", r.number, err)
		os.Exit(1)
	}
}

func number(variable string) int {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		fmt.Fprintln(os.Stderr, variable, err)
		os.Exit(1)
	}
	return n
}
