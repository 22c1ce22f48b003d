package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// measurement is what bench measures, and its result.
type measurement struct {
	Engine      string  `json:"engine"`
	Device      int     `json:"-"`
	Model       string  `json:"model"`
	Shape       string  `json:"-"`
	Classes     int     `json:"-"`
	Batch       int     `json:"batch"`
	Group       int     `json:"micro_batches,omitempty"` // of a lease
	ComputeType string  `json:"compute_type"`
	Mode        string  `json:"mode"`
	Seconds     float64 `json:"-"`
	Built       float64 `json:"build_seconds"`      // compilation included
	First       float64 `json:"first_step_seconds"` // from the engine's start to the end of the first step
	Steps       float64 `json:"steps_per_second"`   // of micro-batches
	Records     float64 `json:"records_per_second"`
	Spread      float64 `json:"spread"` // of three windows: (longest - shortest)/middle
}

// The modes of bench.
const (
	modeResident = "resident" // records and parameters stay on the device: forward, backward, update
	modeStaged   = "staged"   // the next records are copied during the running step
	modeWorker   = "worker"   // as staged, with loss and norm of each update, after each series: a run with one worker
	modeLease    = "lease"    // parameters and several micro-batches up, sums down: with parameter servers
)

func benchCommand() *cobra.Command {
	m := measurement{}
	cmd := &cobra.Command{
		Use:   "bench MODEL",
		Short: "Measure the steps of a built-in model on random records",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.Model = args[0]
			if err := m.measure(cmd.Context()); err != nil {
				return failure(cmd.ErrOrStderr(), "Nothing was measured", err)
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(m)
		},
	}
	f := cmd.Flags()
	f.StringVar(&m.Engine, "engine", spec.EngineCPU, "`NAME` of the engine: see stoke-trainer engines")
	f.IntVar(&m.Device, "device", 0, "`INDEX` of the GPU")
	f.StringVar(&m.Shape, "shape", "28x28", "`DIMENSIONS` of a record of bytes, such as 32x32x3")
	f.IntVar(&m.Classes, "classes", 10, "`NUMBER` of classes")
	f.IntVar(&m.Batch, "batch", 64, "`RECORDS` of a micro-batch")
	f.IntVar(&m.Group, "micro-batches", 16, "`NUMBER` of micro-batches of a lease")
	f.StringVar(&m.ComputeType, "compute-type", "", "`TYPE` of the arithmetic: f32, tf32 or bf16; default: the engine's")
	f.StringVar(&m.Mode, "mode", modeResident, "`MODE`: resident, staged, worker or lease")
	f.Float64Var(&m.Seconds, "seconds", 1, "`SECONDS` of each of three windows")
	cmd.AddCommand(benchReduceCommand())
	return cmd
}

// data returns the model's data: bytes, and a class for each record or position.
func (m *measurement) data() (model.Data, error) {
	d := model.Data{Input: model.Features{Type: model.U8}, Classes: m.Classes}
	for _, text := range strings.Split(m.Shape, "x") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return d, fmt.Errorf("shape %q: want dimensions such as 32x32x3", m.Shape)
		}
		d.Input.Shape = append(d.Input.Shape, n)
	}
	if m.Model == "transformer" {
		d.Target = d.Input
	}
	return d, nil
}

// measure builds the model and fills in the results.
func (m *measurement) measure(ctx context.Context) error {
	if !slices.Contains([]string{modeResident, modeStaged, modeWorker, modeLease}, m.Mode) {
		return fmt.Errorf("mode %q: want %s, %s, %s or %s", m.Mode, modeResident, modeStaged, modeWorker, modeLease)
	}
	if m.Batch < 1 || m.Group < 1 || !(m.Seconds > 0) {
		return errors.New("batch, micro-batches and seconds must be above 0")
	}
	if m.Mode != modeLease {
		m.Group = 0
	}
	entry, err := entryOf(&spec.Spec{Engine: m.Engine})
	if err != nil {
		return err
	}
	data, err := m.data()
	if err != nil {
		return err
	}
	network, err := zoo.Model(m.Model, data)
	if err != nil {
		return err
	}
	if m.ComputeType == "" {
		m.ComputeType = (&spec.Spec{Engine: m.Engine}).ComputeTypeName()
	}
	start := time.Now()
	e, err := entry.New(engine.Config{Device: m.Device})
	if err != nil {
		return err
	}
	begin := time.Now()
	r, err := e.Build(network, engine.Options{Device: m.Device, MicroBatch: m.Batch, ComputeType: m.ComputeType, Seed: 1})
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // the process ends
	b := &bench{replica: r, model: network, measurement: m}
	step, err := b.stepOf(ctx)
	if err != nil {
		return err
	}
	if err := step(1); err != nil {
		return err
	}
	m.First = time.Since(start).Seconds()
	if err := step(2); err != nil { // compiles the rest
		return err
	}
	m.Built = time.Since(begin).Seconds()
	return m.time(step)
}

// time measures three windows of a function that makes so many steps.
func (m *measurement) time(steps func(n int) error) error {
	n := 1
	for {
		begin := time.Now()
		if err := steps(n); err != nil {
			return err
		}
		took := time.Since(begin).Seconds()
		if took > m.Seconds/10 {
			n = max(1, int(float64(n)*m.Seconds/took))
			break
		}
		n *= 2
	}
	var windows []float64
	for range 3 {
		begin := time.Now()
		if err := steps(n); err != nil {
			return err
		}
		windows = append(windows, time.Since(begin).Seconds()/float64(n))
	}
	slices.Sort(windows)
	m.Steps, m.Spread = float64(max(1, m.Group))/windows[1], (windows[2]-windows[0])/windows[1]
	m.Records = m.Steps * float64(m.Batch)
	return nil
}

// bench is a model that is measured.
type bench struct {
	*measurement
	replica engine.Replica
	model   *model.Model
}

// batches makes batches of random records, of so many micro-batches each.
func (b *bench) batches(n, micro int) []*engine.Batch {
	random := rand.New(rand.NewPCG(1, 2))
	records := b.Batch * micro
	answer, elements := b.model.Answer()
	all := make([]*engine.Batch, n)
	for i := range all {
		features := make([]byte, records*engine.FeatureBytes(b.model))
		values := 256
		if v := b.model.Vocabulary(); v > 0 {
			values = min(values, v)
		}
		for j := range features {
			features[j] = byte(random.IntN(values))
		}
		answers := make([]byte, records*elements*answer.Size())
		for j := 0; j < len(answers); j += answer.Size() {
			answers[j] = byte(random.Uint32N(uint32(min(256, b.model.Classes))))
		}
		batch := &engine.Batch{
			Inputs:  []engine.Input{{Type: b.model.Input.Type, Data: features}, {Type: answer, Data: answers}},
			Weights: slices.Repeat([]float32{1}, records), Seed: 1,
		}
		for j := range records {
			batch.Records = append(batch.Records, int64(i*records+j))
		}
		all[i] = batch
	}
	return all
}

// stepOf returns a function that makes so many steps and waits for the last one.
func (b *bench) stepOf(ctx context.Context) (func(n int) error, error) {
	if b.Mode == modeLease {
		return b.leases(ctx)
	}
	u, ok := b.replica.(engine.Updater)
	if !ok {
		return nil, fmt.Errorf("engine %s makes no updates", b.Engine)
	}
	recipe := optimizer.Recipe{Name: optimizer.SGD, LearningRate: 0.001, Momentum: 0.9}
	batches := b.batches(4, 1)
	stage := func(i int) (engine.Staged, error) { return b.replica.Stage(ctx, batches[i%len(batches)], nil) }
	var resident []engine.Staged
	for i := range batches {
		s, err := stage(i)
		if err != nil {
			return nil, err
		}
		resident = append(resident, s)
	}
	return func(n int) error {
		ahead := make(chan engine.Staged, 1)
		failed := make(chan error, 1)
		next := func(i int) (engine.Staged, error) { return resident[i%len(resident)], nil }
		kept, staged := b.Mode == modeWorker, b.Mode != modeResident
		if staged {
			go func() {
				defer close(ahead)
				for i := range n {
					s, err := stage(i)
					if err != nil {
						failed <- err
						return
					}
					ahead <- s
				}
			}()
			next = func(int) (engine.Staged, error) {
				if s := <-ahead; s != nil {
					return s, nil
				}
				return nil, <-failed
			}
		}
		var later []func() (engine.Result, error)
		for i := range n {
			s, err := next(i)
			if err != nil {
				return err
			}
			result, err := b.replica.Step(ctx, s, engine.Pass{First: i == 0, Last: kept, Keep: kept, Ahead: kept})
			if err != nil {
				return err
			}
			if result.Later != nil {
				later = append(later, result.Later)
			}
			if staged {
				s.Release()
			}
			if err := u.Update(nil, float64(b.Batch), recipe); err != nil {
				return err
			}
			if len(later) == wire.MostAhead { // as at the end of a series
				for _, wait := range later {
					if _, err := wait(); err != nil {
						return err
					}
				}
				later = later[:0]
			}
		}
		_, err := b.replica.Step(ctx, resident[0], engine.Pass{Last: true})
		return err
	}, nil
}

// leases returns a function that computes n leases: each begins with new parameters and
// ends with its sums on the host.
func (b *bench) leases(ctx context.Context) (func(n int) error, error) {
	vars, _ := b.replica.Layout()
	vector := make([]float32, model.Length(vars))
	if err := b.replica.Get(0, 0, vector); err != nil {
		return nil, err
	}
	var batches []*engine.Batch // of a lease
	for left := b.Group; left > 0; {
		count := min(left, b.replica.MicroBatches())
		batches = append(batches, b.batches(1, count)...)
		left -= count
	}
	return func(n int) error {
		for range n {
			if err := b.replica.Put(0, 0, vector); err != nil {
				return err
			}
			for i, batch := range batches {
				s, err := b.replica.Stage(ctx, batch, nil)
				if err != nil {
					return err
				}
				pass := engine.Pass{First: i == 0, Last: i == len(batches)-1, Ready: func(int, []float32) {}}
				_, err = b.replica.Step(ctx, s, pass)
				s.Release()
				if err != nil {
					return err
				}
			}
		}
		return nil
	}, nil
}
