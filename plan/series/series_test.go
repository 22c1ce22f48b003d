package series

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
)

var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func update(step int64, values map[string]float64) providers.RunEvent {
	return providers.RunEvent{Number: step, Time: begin.Add(time.Duration(step) * time.Second), Type: "update", Step: step, Values: values}
}

// TestMergingIsExact adds whole numbers, whose sums have no rounding, and compares
// with all of them.
func TestMergingIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{4, 5, 16, 100} {
		s := NewSet(most)
		var sum, low, high float64
		var count int64
		for i := range 20_000 {
			e := update(int64(i+1), nil)
			mean, spread := float64(random.IntN(1000)), float64(random.IntN(5))
			e.Count = 1 + random.Int64N(7)
			e.Values = map[string]float64{"loss": mean}
			e.Ranges = map[string]providers.RunRange{"loss": {Min: mean - spread, Max: mean + spread}}
			s.Add(e)
			sum, count = sum+mean*float64(e.Count), count+e.Count
			if i == 0 {
				low, high = mean-spread, mean+spread
			}
			low, high = min(low, mean-spread), max(high, mean+spread)
		}
		points := s.Find("", "loss").Points
		if len(points) > most || len(points) < most/4 {
			t.Errorf("%d points, want %d to %d", len(points), most/4, most)
		}
		got := Point{Min: math.Inf(1), Max: math.Inf(-1)}
		for i, p := range points {
			if i > 0 && (p.Step <= points[i-1].Step || !p.Time.After(points[i-1].Time)) {
				t.Fatalf("points do not ascend: %v after %v", p, points[i-1])
			}
			got.Min, got.Max = min(got.Min, p.Min), max(got.Max, p.Max)
			got.Mean += p.Mean * float64(p.Count)
			got.Count += p.Count
		}
		if got.Count != count || got.Min != low || got.Max != high || math.Abs(got.Mean-sum) > 1e-6*sum {
			t.Errorf("%d points: got count %d, min %v, max %v, sum %v; want %d, %v, %v, %v",
				most, got.Count, got.Min, got.Max, got.Mean, count, low, high, sum)
		}
		if last := points[len(points)-1]; last.Step != 20_000 {
			t.Errorf("the newest point is of step %d", last.Step)
		}
	}
}

// TestPartsAreEven checks that no part of a long run loses all its points.
func TestPartsAreEven(t *testing.T) {
	s := NewSet(64)
	for i := range int64(100_000) {
		s.Add(update(i+1, map[string]float64{"loss": 1}))
	}
	before := int64(0)
	for _, p := range s.Find("", "loss").Points {
		if p.Step-before > 100_000/8 {
			t.Errorf("one point for steps %d to %d", before, p.Step)
		}
		before = p.Step
	}
}

func TestValuesThatAreNotFinite(t *testing.T) {
	s := NewSet(4)
	for i, v := range []float64{1, math.NaN(), 3, math.Inf(1), math.Inf(-1), 5, 7, 9, 11, 13} {
		s.Add(update(int64(i+1), map[string]float64{"loss": v}))
	}
	e := update(20, map[string]float64{"loss": 1})
	e.Ranges = map[string]providers.RunRange{"loss": {Min: math.Inf(-1), Max: math.NaN()}}
	s.Add(e)
	// Values at the ends of the range of numbers do not make a mean infinite.
	for i := range 20 {
		s.Add(update(int64(30+i), map[string]float64{"large": math.MaxFloat64 * float64(1-2*(i%2))}))
	}
	for _, one := range s.All() {
		var count int64
		for _, p := range one.Points {
			if !isFinite(p.Mean) || !isFinite(p.Min) || !isFinite(p.Max) {
				t.Errorf("%s: %v", one.Name, p)
			}
			count += p.Count
		}
		if want := map[string]int64{"loss": 7, "large": 20}[one.Name]; count != want {
			t.Errorf("%s: %d samples, want %d", one.Name, count, want)
		}
	}
}

func TestNames(t *testing.T) {
	s := NewSet(8)
	s.Add(providers.RunEvent{Type: "usage", Role: "worker-1", Values: map[string]float64{"worker-1.cpu": 1.5}, Count: 3})
	s.Add(providers.RunEvent{Type: "evaluation", Step: 3, Values: map[string]float64{"loss": 2, "accuracy": 0.5}})
	s.Add(update(3, map[string]float64{"loss": 1, "\x1b[31mred\x07\xff": 4, strings.Repeat("ä", 500): 5}))
	got := ""
	for _, one := range s.All() {
		got += fmt.Sprintf("%s|%s|%v|%d\n", one.Role, one.Name, one.Points[0].Mean, one.Points[0].Count)
	}
	want := "|[31mred\ufffd|4|1\n|accuracy|0.5|1\n|evaluation.loss|2|1\n|loss|1|1\n|" + strings.Repeat("ä", 100) + "…|5|1\nworker-1|cpu|1.5|3\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s.Find("", "nothing") != nil {
		t.Error("a series that does not exist was found")
	}
	s.Find("worker-1", "cpu").Points[0].Mean = 9
	if s.Find("worker-1", "cpu").Points[0].Mean != 1.5 {
		t.Error("a caller can change the set")
	}
}

func TestNamesAreBounded(t *testing.T) {
	s := NewSet(8)
	for i := range int64(maxNames + 10) {
		s.Add(update(i, map[string]float64{fmt.Sprint("m", i): 1}))
	}
	if n := len(s.All()); n != maxNames || s.CountLeftOut() != 10 {
		t.Errorf("%d series, %d left out", n, s.CountLeftOut())
	}
}

// TestStepBack checks that values which a restore made void are removed, and usage stays.
func TestStepBack(t *testing.T) {
	s := NewSet(100)
	for i := range int64(10) {
		s.Add(update(i+1, map[string]float64{"loss": float64(i + 1)}))
		s.Add(providers.RunEvent{Type: "usage", Step: i + 1, Role: "worker-0", Values: map[string]float64{"worker-0.cpu": 1}})
	}
	s.Add(providers.RunEvent{Type: "restore", Step: 4})
	s.Add(update(5, map[string]float64{"loss": 50}))
	got := ""
	for _, p := range s.Find("", "loss").Points {
		got += fmt.Sprint(p.Step, "=", p.Mean, " ")
	}
	if want := "1=1 2=2 3=3 4=4 5=50 "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(s.Find("worker-0", "cpu").Points); n != 10 {
		t.Errorf("%d samples of usage, want 10", n)
	}
}

func TestHugeCounts(t *testing.T) {
	s := NewSet(4)
	for i := range int64(10_000) {
		e := update(i+1, map[string]float64{"loss": 2})
		e.Count = math.MaxInt64 - i
		s.Add(e)
	}
	for _, p := range s.Find("", "loss").Points {
		if p.Count <= 0 || p.Mean != 2 {
			t.Errorf("%v", p)
		}
	}
}

// TestSmooth compares with the recurrence that TensorBoard documents.
func TestSmooth(t *testing.T) {
	one := &Series{}
	for _, v := range []float64{1, 2, 4, 8} {
		one.Points = append(one.Points, Point{Mean: v})
	}
	for _, weight := range []float64{0, 0.6, 0.9, 1, -1, math.NaN()} {
		got := one.Smooth(weight)
		w := weight
		if !(w > 0) {
			w = 0
		}
		w = min(w, 0.999)
		last := 0.0
		for i, p := range one.Points {
			last = last*w + (1-w)*p.Mean
			want := last
			if w > 0 {
				want = last / (1 - math.Pow(w, float64(i+1)))
			}
			if math.Abs(got[i]-want) > 1e-9 {
				t.Errorf("weight %v, point %d: got %v, want %v", weight, i, got[i], want)
			}
		}
	}
}
