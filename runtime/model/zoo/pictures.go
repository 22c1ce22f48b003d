package zoo

import (
	"fmt"

	"github.com/stokehq/stoke/runtime/model"
)

// The values of batch normalisation in PyTorch, which the residual networks have.
const normEpsilon = 1e-5

// deepConvolutional is the network of Keras's example cifar10_cnn: 1,250,858
// parameters for pictures of 32 × 32 × 3 and ten classes.
func deepConvolutional(classes int) (layers []model.Layer) {
	for i, filters := range []int{32, 64} {
		n := func(name string, number int) string { return fmt.Sprintf("%s%d", name, 2*i+number) }
		layers = append(layers,
			model.Layer{Name: n("conv", 1), Op: model.Conv2D, Filters: filters, Kernel: 3, Padding: model.Same},
			model.Layer{Name: n("relu", 1), Op: model.ReLU},
			model.Layer{Name: n("conv", 2), Op: model.Conv2D, Filters: filters, Kernel: 3},
			model.Layer{Name: n("relu", 2), Op: model.ReLU},
			model.Layer{Name: fmt.Sprintf("pool%d", i+1), Op: model.MaxPool, Kernel: 2},
			model.Layer{Name: fmt.Sprintf("dropout%d", i+1), Op: model.Dropout, Rate: 0.25},
		)
	}
	return append(layers,
		model.Layer{Name: "flatten", Op: model.Flatten},
		dense("hidden", 512),
		model.Layer{Name: "relu5", Op: model.ReLU},
		model.Layer{Name: "dropout3", Op: model.Dropout, Rate: 0.5},
		dense("output", classes),
	)
}

// residual is a residual network for small pictures (He, Zhang, Ren and Sun 2015,
// section 4.2): a convolution of 3 × 3, then blocks of two convolutions, so many of
// each width. The first block of a width halves height and width of the picture; its
// shortcut is a convolution of 1 × 1 (option B). With the widths 16, 32 and 64 and three
// blocks it is ResNet-20 (272,474 parameters for ten classes), with 64 to 512 and two
// blocks ResNet-18 without the reduction for large pictures (11,173,962).
func residual(widths []int, blocks, classes int) []model.Layer {
	var layers []model.Layer
	add := func(l model.Layer, inputs ...string) string {
		l.Inputs = inputs
		layers = append(layers, l)
		return l.Name
	}
	convolve := func(name string, filters, kernel, stride int, inputs ...string) {
		conv := model.Layer{Name: name, Op: model.Conv2D, Filters: filters, Kernel: kernel, Stride: stride}
		conv.Pad, conv.NoBias = kernel/2, true
		add(conv, inputs...)
		add(model.Layer{Name: name + ".norm", Op: model.BatchNorm, Epsilon: normEpsilon})
	}
	convolve("conv", widths[0], 3, 1)
	from := add(model.Layer{Name: "relu", Op: model.ReLU})
	for i, width := range widths {
		for j := range blocks {
			name := fmt.Sprintf("block%d.%d", i+1, j+1)
			stride, shortcut := 1, from
			if i > 0 && j == 0 {
				stride = 2
			}
			convolve(name+".conv1", width, 3, stride, from)
			add(model.Layer{Name: name + ".relu1", Op: model.ReLU})
			convolve(name+".conv2", width, 3, 1)
			if stride > 1 {
				convolve(name+".shortcut", width, 1, stride, from)
				shortcut = name + ".shortcut.norm"
			}
			add(model.Layer{Name: name + ".sum", Op: model.Add}, name+".conv2.norm", shortcut)
			from = add(model.Layer{Name: name + ".relu2", Op: model.ReLU})
		}
	}
	add(model.Layer{Name: "mean", Op: model.GlobalAvg})
	add(dense("output", classes))
	return layers
}
