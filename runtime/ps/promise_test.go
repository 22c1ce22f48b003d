package ps

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// fakeDevice counts updates in its only parameter.
type fakeDevice struct {
	engine.Updater
	v     float32
	valid bool
}

func (f *fakeDevice) Put(vector, offset int, v []float32) error {
	if vector == 0 {
		f.v = v[0]
	}
	return nil
}
func (f *fakeDevice) Get(vector, offset int, v []float32) error {
	if vector == 0 {
		v[0] = f.v
	}
	return nil
}
func (f *fakeDevice) Step(context.Context, engine.Staged, engine.Pass) (engine.Result, error) {
	return engine.Result{}, nil
}
func (f *fakeDevice) Update([]float32, float64, optimizer.Recipe) error {
	if f.valid {
		f.v++
	}
	return nil
}

// residentServer returns a member at version 10 whose device has the value 10.
func residentServer(t *testing.T) (*Server, *fakeDevice, *engine.Resident) {
	s := newServer(new(bytes.Buffer))
	a := restore(t, s, wire.Restore{Term: 3, Version: 10, From: 0, To: 1, Exact: true, Recipe: optimizer.Recipe{Name: optimizer.SGD, LearningRate: 1},
		Vars: []model.Var{{Name: "w", Len: 1}}, Group: &wire.Group{Members: []string{"a"}}}, []float32{10})
	if a != (wire.Answer{}) {
		t.Fatal(a)
	}
	f := &fakeDevice{v: 10, valid: true}
	r := engine.NewResident(f)
	if err := (Member{s}).Reside(r); err != nil {
		t.Fatal(err)
	}
	return s, f, r
}

// computeOn lets the device compute an update; with later its numbers come later.
func computeOn(t *testing.T, s *Server, f *fakeDevice, r *engine.Resident, v int64, finite, later bool) {
	r.Begin(3, v)
	res := engine.Result{Weight: 1, Finite: true, Squares: 1}
	if !finite {
		f.valid = false
	}
	if later {
		res.Later = func() (engine.Result, error) {
			x := engine.Result{Weight: 1, Finite: finite, Squares: 1}
			if !finite {
				x.Squares = math.Inf(1)
			}
			return x, nil
		}
	}
	r.Keep(v, res)
	p := wire.Push{ID: v, Version: v, Exact: true, Weight: 1, Leaves: 1, Contribution: spec.Contribution{Term: 3, Start: v, End: v + 1}}
	if a := (Member{s}).Contribute(p, nil, nil); a != (wire.Answer{}) {
		t.Fatal(a)
	}
}

func prepareOf(v int64) wire.Prepare {
	return wire.Prepare{Term: 3, Version: v, IDs: []int64{v}, Weight: 1, Alone: &optimizer.Recipe{Name: optimizer.SGD, LearningRate: 1}}
}

// twoPromised makes update 11, then promises updates 12 and 13; the last one is finite or not.
func twoPromised(t *testing.T, finite bool) (s *Server, p wire.Prepare, first, last wire.Answer) {
	t.Helper()
	s, f, r := residentServer(t)
	computeOn(t, s, f, r, 10, true, false)
	if a := prepareAll(t.Context(), s, prepareOf(10)); !a.Finite || a.SquaredNorm != 1 {
		t.Fatal(a)
	}
	p = prepareOf(11)
	p.Then = []wire.Prepare{prepareOf(12)}
	computeOn(t, s, f, r, 11, true, true)
	first = s.prepare(t.Context(), p)
	computeOn(t, s, f, r, 12, finite, true)
	last = s.prepare(t.Context(), p.Then[0])
	if len(s.resident.promised) != 2 {
		t.Fatalf("%d updates are promised", len(s.resident.promised))
	}
	return s, p, first, last
}

// Promised updates have their numbers in the answer to the request for them.
func TestPromisedUpdates(t *testing.T) {
	s, p, first, last := twoPromised(t, true)
	a := redeemAll(s, p, []wire.Answer{first}, last)
	if !a.Finite || a.SquaredNorm != 1 || a.Series == nil || len(a.Series.SquaredNorms) != 1 || a.Series.SquaredNorms[0] != 1 || s.version != 13 {
		t.Errorf("%+v, version %d", a, s.version)
	}
}

// A promised update that is not finite is refused, also where another request finds it first.
func TestPromiseIsNotKept(t *testing.T) {
	for _, other := range []bool{false, true} {
		s, p, first, last := twoPromised(t, false)
		if other {
			redeemPromises(s)
		}
		if a := redeemAll(s, p, []wire.Answer{first}, last); a.Refused == "" || s.version != 12 {
			t.Errorf("found by another request %v: %+v, version %d", other, a, s.version)
		}
	}
}

// The worker takes its device back: the server has the parameters of the version before the
// update that is not finite.
func TestResideAfterAPromiseThatIsNotKept(t *testing.T) {
	s, _, _, _ := twoPromised(t, false)
	if err := (Member{s}).Reside(nil); err == nil {
		t.Error("no refusal")
	}
	if s.version != 12 || s.values.v[0] != 12 || s.term != 3 {
		t.Errorf("version %d of term %d, values %v", s.version, s.term, s.values.v)
	}
}

// A hold answers the version whose updates it knows all of.
func TestHoldRedeemsPromises(t *testing.T) {
	s, _, _, _ := twoPromised(t, true)
	held := s.answerHold(wire.Hold{Term: 4}).Held
	if held.Version != 13 || len(held.Taken) != 1 || held.Taken[0].Start != 12 || len(held.Before) != 2 {
		t.Errorf("version %d, decision about %+v, %d before", held.Version, held.Taken, len(held.Before))
	}
}

// A restore in another term forgets promises.
func TestRestoreForgetsPromises(t *testing.T) {
	s, p, first, last := twoPromised(t, false)
	restore(t, s, wire.Restore{Term: 4, Version: 5, From: 0, To: 1, Exact: true, Recipe: optimizer.Recipe{Name: optimizer.SGD, LearningRate: 1},
		Vars: []model.Var{{Name: "w", Len: 1}}, Group: &wire.Group{Members: []string{"a"}}}, []float32{5})
	if a := redeemAll(s, p, []wire.Answer{first}, last); a.Refused == "" || s.version != 5 || s.term != 4 || s.values.v[0] != 5 || s.decided != nil {
		t.Errorf("%+v: version %d of term %d, values %v", a, s.version, s.term, s.values.v)
	}
}
