package cpu_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
)

func TestConvGradients(t *testing.T) {
	same := conv("second", 3)
	same.Padding = model.Same
	strided := same
	strided.Stride = 2
	for name, second := range map[string]model.Layer{"valid": conv("second", 3), "same": same, "same, stride 2": strided} {
		t.Run(name, func(t *testing.T) {
			m := network([]int{7, 6, 2}, conv("first", 4), rectify, second, flat, dense("out", classes))
			checkGradients(t, m, 1, 1.5)
		})
	}
}

// The unfolded product against the definition of a convolution, written out.
func TestConvOutputs(t *testing.T) {
	const height, width, depth = 6, 5, 2
	for _, padding := range []string{model.Valid, model.Same} {
		for kernel := 1; kernel <= 4; kernel++ {
			for stride := 1; stride <= 3; stride++ {
				t.Run(fmt.Sprintf("%s kernel %d stride %d", padding, kernel, stride), func(t *testing.T) {
					l := model.Layer{Name: "conv", Op: model.Conv2D, Filters: classes, Kernel: kernel, Stride: stride, Padding: padding}
					before, rowsOut := l.WindowPadding(height)
					left, columnsOut := l.WindowPadding(width)
					// A pool over everything would hide errors; look at each
					// position through a dense layer that selects it.
					m := network([]int{height, width, depth}, l, flat, dense("out", classes))
					r := build(t, m, engine.Options{Threads: 1, MicroBatch: 1, Seed: 9})
					jitter(t, r)
					v := values(t, r)
					weight := func(ky, kx, d, f int) float64 {
						return float64(v[((ky*kernel+kx)*depth+d)*classes+f])
					}
					vars, _ := r.Layout()
					bias, out := v[vars[1].Offset:], vars[2]
					batch := floats(m.Input.Shape, 1)
					pixel := decode(batch)
					for oy := range rowsOut {
						for ox := range columnsOut {
							pick := make([]float32, out.Len+classes)
							for f := range classes {
								pick[((oy*columnsOut+ox)*classes+f)*classes+f] = 1
							}
							if err := r.Put(0, out.Offset, pick); err != nil {
								t.Fatal(err)
							}
							got := predict(t, r, batch)
							for f := range classes {
								want := float64(bias[f])
								for ky := range kernel {
									for kx := range kernel {
										y, x := oy*stride-before+ky, ox*stride-left+kx
										if y < 0 || y >= height || x < 0 || x >= width {
											continue
										}
										for d := range depth {
											want += weight(ky, kx, d, f) * float64(pixel[(y*width+x)*depth+d])
										}
									}
								}
								if math.Abs(want-float64(got[f])) > 1e-4 {
									t.Fatalf("output %d, %d of map %d is %v, want %v", oy, ox, f, got[f], want)
								}
							}
						}
					}
				})
			}
		}
	}
}

// A convolution of groups is one whose weights between groups are zeros.
func TestConvGroups(t *testing.T) {
	const height, width, depth = 6, 5, 4
	for _, test := range []struct{ groups, filters int }{{2, 6}, {4, 4}, {4, 8}} {
		l := model.Layer{Name: "conv", Op: model.Conv2D, Filters: test.filters, Kernel: 3, Stride: 2, Pad: 1, Groups: test.groups}
		network := func(l model.Layer) *model.Model {
			return network([]int{height, width, depth}, conv("first", depth), l, flat, dense("out", classes))
		}
		checkGradients(t, network(l), 1, 1.5)
		grouped := build(t, network(l), engine.Options{Threads: 2, MicroBatch: 3, Seed: 9})
		jitter(t, grouped)
		l.Groups = 0
		whole := build(t, network(l), engine.Options{Threads: 1, MicroBatch: 3})
		from, at := values(t, grouped), values(t, whole)
		before, _ := grouped.Layout()
		after, _ := whole.Layout()
		for i, v := range before {
			if v.Name != "conv/weight" {
				copy(at[after[i].Offset:], from[v.Offset:v.Offset+v.Len])
				continue
			}
			channels, filters := v.Shape[2], test.filters/test.groups
			clear(at[after[i].Offset : after[i].Offset+after[i].Len])
			for j := range v.Len {
				place, c, f := j/test.filters/channels, j/test.filters%channels, j%test.filters
				at[after[i].Offset+(place*depth+f/filters*channels+c)*test.filters+f] = from[v.Offset+j]
			}
		}
		if err := whole.Put(0, 0, at); err != nil {
			t.Fatal(err)
		}
		b := floats([]int{height, width, depth}, 1, 1, 1)
		want, got := predict(t, whole, b), predict(t, grouped, b)
		for i := range want {
			if math.Abs(float64(want[i]-got[i])) > 1e-5 {
				t.Fatalf("%d groups: outputs %v, want %v", test.groups, got, want)
			}
		}
	}
}
