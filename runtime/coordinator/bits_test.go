package coordinator

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stokehq/stoke/runtime/engine/cpu"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/spec"
)

// parameters returns all vectors of the final model of a run, one behind the
// other.
func (b *bench) parameters() []float32 {
	b.t.Helper()
	place := b.options.Checkpoints
	names, err := place.Names(b.t.Context(), spec.FinalPrefix)
	if err != nil || len(names) != 1 {
		b.t.Fatalf("final models %v: %v", names, err)
	}
	m, err := place.Manifest(b.t.Context(), names[0])
	if err != nil {
		b.t.Fatal(err)
	}
	n := model.Length(b.options.Workload.Vars)
	all := make([]float32, n*m.Parts[0].Vectors)
	var vectors [][]float32
	for i := range m.Parts[0].Vectors {
		vectors = append(vectors, all[i*n:(i+1)*n])
	}
	if err := place.Load(b.t.Context(), names[0], m.Parts, 0, n, vectors); err != nil {
		b.t.Fatal(err)
	}
	return all
}

// hashed returns the first half of the SHA-256 of values and of the last loss.
func hashed(values []float32, loss float64) string {
	h := sha256.New()
	var b [8]byte
	for _, v := range values {
		binary.LittleEndian.PutUint32(b[:4], math.Float32bits(v))
		h.Write(b[:4])
	}
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(loss))
	h.Write(b[:])
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// layered is a model of two layers on points for the CPU engine.
func layered(b *bench) { hidden(b, 9) }

// hidden is layered with so many hidden units.
func hidden(b *bench, units int) {
	b.engine = cpu.New()
	w := b.options.Workload
	w.Model = &model.Model{
		Name: "points", Input: model.Features{Type: model.U8, Shape: []int{2}}, Classes: 2, Metrics: []string{model.Accuracy},
		Layers: []model.Layer{{Name: "a", Op: model.Dense, Units: units}, {Name: "r", Op: model.ReLU}, {Name: "w", Op: model.Dense, Units: 2}},
		Loss:   model.SoftmaxCrossEntropy,
	}
	var err error
	if w.Vars, _, err = w.Model.Layout(); err != nil {
		b.t.Fatal(err)
	}
}

// Deterministic runs give the bits that they gave when every lease was pushed
// by itself: these were recorded at commit 2bfdd80, with one worker and one
// server.
func TestBitsOfDeterministicRuns(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("recorded on amd64: other processors fuse multiplications and additions")
	}
	for _, tt := range []struct {
		batch, micro int
		records      int64
		cpu          bool
		want         string
	}{
		{50, 8, 600, false, "9e9da20320b14477f9924984a4debcff"},
		{250, 1, 600, false, "41e9ae8c861a111eb6b2540e712a132e"},
		{1024, 32, 2500, false, "8a02c0b599dccc5d67d4244590ef0552"},
		{50, 8, 600, true, "11ad1d366d5d1f4da28299e9ba171196"},
		{250, 1, 600, true, "a84e90ac647d530ff4134d28a765bf5d"},
		{1024, 32, 2500, true, "6a4ea1250f00d5e79c15463cd6e1e1a6"},
	} {
		t.Run(fmt.Sprintf("batch %d of %d, CPU engine %v", tt.batch, tt.micro, tt.cpu), func(t *testing.T) {
			t.Parallel()
			for _, workers := range []int{1, 2, 3, 6} {
				for _, servers := range []int{0, 1, 2} { // 0: all-reduce
					s := pointsSpec()
					s.BatchSize, s.MicroBatch, s.Optimizer.Momentum, s.Deterministic = tt.batch, tt.micro, 0.5, true
					s.LearningRate = 0.5
					s.Worker.Replicas, s.ParameterServer.Replicas = workers, servers
					if servers == 0 {
						s.Strategy = spec.StrategyAllReduce
					}
					b := unserved(t, s, linear{size: 4})
					b.options.Workload.Train = points{tt.records}
					if tt.cpu {
						layered(b)
					}
					b.serve()
					st := b.run()
					if st.Phase != spec.Succeeded || st.Records != 3*tt.records {
						t.Fatalf("%d workers, %d servers: status %+v", workers, servers, st)
					}
					if got := hashed(b.parameters(), float64(st.Loss)); got != tt.want {
						t.Errorf("%d workers, %d servers: %s, want %s", workers, servers, got, tt.want)
					}
				}
			}
		})
	}
}
