package train

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/code"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// The test binary is its own stoke-trainer: started under that name it speaks
// the supervisor's protocol, strictly, and pretends to train.

func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == trainerName || name == gpuTrainerName {
		os.Exit(fakeTrainer(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// behaviour is read from behaviour.json in the folder of the fake trainer, or from
// gpu.json where it is the one with GPUs.
type behaviour struct {
	Hold     string   `json:"hold"`     // train until this file exists
	Fail     bool     `json:"fail"`     // end as failed
	Mute     bool     `json:"mute"`     // never say who we are
	Refuse   bool     `json:"refuse"`   // exit at once
	Deaf     bool     `json:"deaf"`     // ignore SIGTERM
	Save     bool     `json:"save"`     // leave a checkpoint
	Stepless bool     `json:"stepless"` // a program that reports nothing while it runs
	Overrun  bool     `json:"overrun"`  // stop at a deadline that allows less than a hundred hours
	Engines  []string `json:"engines"`  //
	Problem  string   `json:"problem"`  // of the engine xla, which then does not work
	GPUs     []device `json:"gpus"`     // that the engine xla sees
	Layers   string   `json:"layers"`   // hash of every model's
	PrepErr  string   `json:"prep_err"` // fail to prepare
}

// gpuBehaviour has the behaviour of the fake trainer with GPUs.
const gpuBehaviour = "gpu.json"

func fakeFolder() string { return filepath.Dir(os.Args[0]) }

func readBehaviour() (b behaviour) {
	name := "behaviour.json"
	if filepath.Base(os.Args[0]) == gpuTrainerName {
		name = gpuBehaviour
	}
	data, err := os.ReadFile(filepath.Join(fakeFolder(), name))
	if err == nil {
		err = json.Unmarshal(data, &b)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	return b
}

// note appends a line to a log beside the fake trainer, for tests to count.
func noteCall(log, line string) {
	f, err := os.OpenFile(filepath.Join(fakeFolder(), log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

func fakeTrainer(args []string) int {
	b := readBehaviour()
	switch {
	case len(args) == 3 && args[0] == "supervise" && args[1] == "--run":
		noteCall("supervisors.log", filepath.Base(os.Args[0]))
		return fakeSupervise(b, run.Folder(args[2]))
	case len(args) >= 3 && args[0] == "model" && args[1] == "describe":
		text, err := os.ReadFile(args[2])
		if err != nil {
			json.NewEncoder(os.Stderr).Encode(api.Failure{Summary: "Model cannot be used", Detail: err.Error()})
			return 1
		}
		json.NewEncoder(os.Stdout).Encode(weights{Hash: fmt.Sprintf("sha256:%x", sha256.Sum256(text))})
		return 0
	case len(args) >= 2 && args[0] == "dataset":
		return fakeDataset(b, args[1:])
	case len(args) == 2 && args[0] == "engines" && args[1] == "--json":
		can := abilities{Engines: append([]string{"cpu"}, b.Engines...), Models: []string{"mlp", "mnist-cnn", "softmax"}, Layers: map[string]string{}}
		if b.Problem != "" {
			can.Problems = map[string]string{spec.EngineXLA: b.Problem}
		}
		if b.GPUs != nil {
			can.Devices = map[string][]device{spec.EngineXLA: b.GPUs}
		}
		for _, op := range model.Ops() {
			can.Operations = append(can.Operations, string(op))
		}
		for _, name := range can.Models {
			can.Layers[name] = b.Layers
		}
		json.NewEncoder(os.Stdout).Encode(can)
		return 0
	}
	fmt.Fprintf(os.Stderr, "unknown command %q\n", args)
	return 2
}

type fakeRun struct {
	mu     sync.Mutex
	stop   chan struct{} // asked to stop
	folder run.Folder
	spec   spec.Spec
	status spec.Status
}

func fakeSupervise(b behaviour, f run.Folder) int {
	if b.Refuse {
		fmt.Fprintln(os.Stderr, "no disk left")
		return 1
	}
	lock := flock.New(f.Lock())
	waiting, cancel := context.WithTimeout(context.Background(), 10*time.Second) // for all threads of one that was killed
	defer cancel()
	if ok, err := lock.TryLockContext(waiting, 10*time.Millisecond); err != nil || !ok {
		fmt.Fprintln(os.Stderr, "another supervisor owns the run")
		return 1
	}
	s, err := f.ReadSpec()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if hash := s.Program.Code; hash != "" {
		archive, err := os.Open(f.Code(hash))
		if err == nil {
			_, err = code.Unpack(context.Background(), archive, filepath.Join(string(f), "unpacked"), hash)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		os.RemoveAll(filepath.Join(string(f), "unpacked"))
		noteCall("code.log", hash)
	}
	r := &fakeRun{folder: f, spec: s, stop: make(chan struct{}, 1)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, r)
	if b.Mute {
		time.Sleep(time.Hour)
	}
	self, err := run.Self()
	if err != nil {
		panic(err)
	}
	sup := run.Supervisor{Process: self, API: "http://" + listener.Addr().String(), Token: f.Token(), Version: "fake"}
	if err := run.WriteJSON(f.Supervisor(), sup); err != nil {
		panic(err)
	}
	json.NewEncoder(os.Stdout).Encode(sup)
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil || line != run.Go+"\n" {
		os.Remove(f.Supervisor())
		return 0
	}
	noteCall("starts.log", f.Name())
	return r.train(b)
}

func (r *fakeRun) train(b behaviour) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	now := time.Now()
	r.write(func(s *spec.Status) {
		*s = spec.Status{Run: r.folder.Name(), Hash: r.spec.Hash(), Phase: spec.Running, Steps: 100, Epochs: r.spec.Epochs,
			Workers: r.spec.Worker.Replicas, Wanted: r.spec.Worker.Replicas, Evaluated: -1, Started: now}
	})
	if r.spec.HasProgram() {
		r.write(func(s *spec.Status) { s.Steps = 0 }) // which nobody knows
	}
	if b.Save {
		saved, complete := filepath.Join(r.folder.Checkpoints(), "step-000000000010"), "manifest.json"
		if r.spec.HasProgram() {
			complete = ".complete"
		}
		os.MkdirAll(saved, 0o700)
		os.WriteFile(filepath.Join(saved, complete), nil, 0o600)
	}
	for step := int64(1); ; step++ {
		_, err := os.Stat(b.Hold)
		held := b.Hold != "" && err != nil
		r.write(func(s *spec.Status) {
			s.Step, s.Loss = min(step, 99), 0.5
			switch {
			case b.Stepless:
				s.Step, s.Metrics = 0, map[string]float64{}
			case r.spec.HasProgram():
				s.Loss, s.Metrics = 0, map[string]float64{"loss": 0.3125}
			}
		})
		if !held {
			break
		}
		if d := time.Duration(r.spec.Deadline); b.Overrun && d > 0 && d < 100*time.Hour && step > 5 {
			r.write(func(s *spec.Status) {
				s.Phase, s.Cause, s.Message, s.Ran = spec.Stopped, spec.CauseDeadline, "it has run for its deadline", 100*3600
			})
			return 1
		}
		stopped := func() { r.write(func(s *spec.Status) { s.Phase, s.Message = spec.Stopped, "stopped by request" }) }
		select {
		case <-r.stop:
			stopped()
			return 1
		case <-term:
			if !b.Deaf {
				stopped()
				return 1
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
	r.write(func(s *spec.Status) {
		s.Ended = time.Now()
		if b.Fail {
			s.Phase, s.Message, s.Log = spec.Failed, "worker 0 ran out of memory", "first line\nallocation of 99 GB failed\x1b[31m\n"
			return
		}
		if r.spec.HasProgram() {
			s.Phase, s.Metrics = spec.Succeeded, map[string]float64{"loss": 0.25, "reward": 7}
			return
		}
		s.Phase, s.Step, s.Epoch, s.Evaluated = spec.Succeeded, 100, r.spec.Epochs, 100
		s.Metrics = map[string]float64{"accuracy": 0.97312345, "loss": 0.1, "samples_per_second": 5120.3, "steps": 100}
	})
	if b.Fail {
		return 1
	}
	return 0
}

func (r *fakeRun) write(change func(*spec.Status)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.status)
	r.status.Updated = time.Now()
	if err := run.WriteJSON(r.folder.StatusFile(), r.status); err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
}

func (r *fakeRun) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	token, err := r.folder.ReadToken()
	if err != nil || req.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.Method == http.MethodPost && req.URL.Path == api.PathStop {
		select {
		case r.stop <- struct{}{}:
		default:
		}
		fmt.Fprintln(w, "{}")
		return
	}
	var change spec.LiveChange
	if req.Method != http.MethodPost || req.URL.Path != api.PathLive || json.NewDecoder(req.Body).Decode(&change) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	change.Apply(&r.spec)
	r.status.Workers, r.status.Wanted = r.spec.Worker.Replicas, r.spec.Worker.Replicas
	noteCall("live.log", fmt.Sprint(r.spec.Worker.Replicas))
}

func fakeDataset(b behaviour, args []string) int {
	fail := func(summary, detail, file string) int {
		json.NewEncoder(os.Stderr).Encode(api.Failure{Summary: summary, Detail: detail, File: file})
		return 1
	}
	if len(args) < 3 || args[1] != "--origin" {
		return 2
	}
	var from spec.Origin
	if err := json.Unmarshal([]byte(args[2]), &from); err != nil {
		return fail("Origin is malformed", err.Error(), "")
	}
	noteCall(args[0]+".log", from.Format)
	h := sha256.New()
	if from.Path == "" {
		fmt.Fprint(h, args[2])
	} else {
		data, err := os.ReadFile(filepath.Join(from.Path, "data"))
		if err != nil {
			return fail("File of the dataset is missing", "Put it there.", filepath.Join(from.Path, "data"))
		}
		if string(data) == "truncated" {
			return fail("File is truncated", "The header promises more records.", filepath.Join(from.Path, "data"))
		}
		h.Write(data)
	}
	m := manifest{Format: from.Format, Hash: "sha256:" + hex.EncodeToString(h.Sum(nil)),
		Train: split{Records: 1000, Type: model.U8, Shape: []int{28, 28}, Classes: 10}, Test: split{Records: 200, Type: model.U8, Shape: []int{28, 28}, Classes: 10}}
	if args[0] == "prepare" {
		if b.PrepErr != "" {
			return fail(b.PrepErr, "Make room.", "")
		}
		fmt.Fprintln(os.Stderr, `{"done":500,"total":1200}`)
		if err := os.Mkdir(args[4], 0o700); err != nil { // as the real one: never into what is there
			return fail("Dataset cannot be prepared", err.Error(), "")
		}
		for _, name := range []string{"train.rio", "test.rio"} {
			if err := os.WriteFile(filepath.Join(args[4], name), []byte("records"), 0o600); err != nil {
				return fail("File cannot be written", err.Error(), "")
			}
		}
		if err := run.WriteJSON(filepath.Join(args[4], "manifest.json"), m); err != nil {
			return fail("File cannot be written", err.Error(), "")
		}
	}
	json.NewEncoder(os.Stdout).Encode(m)
	return 0
}
