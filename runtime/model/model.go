package model

import "github.com/stokehq/stoke/runtime/spec"

// Op names what a layer computes.
type Op string

// The operations of a Layer. Tensors are records × height × width × channels
// (channels last), or records × features behind a Flatten.
const (
	Dense     Op = "dense"           // Units outputs of all inputs, with a bias
	Conv2D    Op = "conv2d"          // Filters maps, Kernel × Kernel, Stride, Padding or Pad, with a bias
	MaxPool   Op = "max_pool"        // maximum of Kernel × Kernel, Stride (default: Kernel), no padding
	AvgPool   Op = "avg_pool"        // mean of Kernel × Kernel, Stride (default: Kernel), no padding
	GlobalAvg Op = "global_avg_pool" // mean of each channel over height and width: one row of features
	BatchNorm Op = "batch_norm"      // normalises each channel over the micro-batch
	LayerNorm Op = "layer_norm"      // normalises the last dimension of each record and position
	ReLU      Op = "relu"            // max(0, x)
	GELU      Op = "gelu"            // x·Φ(x), Φ the normal distribution (Hendrycks and Gimpel 2016), without approximation
	Tanh      Op = "tanh"            //
	Sigmoid   Op = "sigmoid"         // 1/(1 + e⁻ˣ)
	Dropout   Op = "dropout"         // drops Rate of the elements in training and scales up the rest
	Flatten   Op = "flatten"         // all dimensions but the record become one
	Add       Op = "add"             // the sum of its inputs, which have one shape
	Concat    Op = "concat"          // its inputs side by side along the last dimension
)

// Values of Layer.Padding.
const (
	Valid = "valid" // no padding: the output shrinks
	Same  = "same"  // zeros around, output = input/stride rounded up, as in TensorFlow
)

// SoftmaxCrossEntropy is the loss over Classes logits: its labels are int32
// class numbers.
const SoftmaxCrossEntropy = spec.LossSoftmaxCrossEntropy

// Accuracy is the metric that counts correct answers (of equal best logits,
// the lowest class answers).
const Accuracy = "accuracy"

// Features says what one record's features are and how they become numbers:
// value × Scale.
type Features struct {
	Type  DType   `json:"type"`
	Shape []int   `json:"shape"`           // without the record's dimension, e.g. 28, 28
	Scale float32 `json:"scale,omitempty"` // 0: 1/255 for u8, else 1
}

// Factor is Scale with its default filled in.
func (f Features) Factor() float32 {
	if f.Scale != 0 {
		return f.Scale
	}
	if f.Type == U8 {
		return 1.0 / 255
	}
	return 1
}

// Layer is one layer of a Model. Fields that its Op does not use stay zero.
type Layer struct {
	Name     string   `json:"name"` // unique in the model; variables are named after it
	Op       Op       `json:"op"`
	Inputs   []string `json:"inputs,omitempty"` // names of earlier layers, or Source; none: the layer before
	Units    int      `json:"units,omitempty"`
	Filters  int      `json:"filters,omitempty"`
	Kernel   int      `json:"kernel,omitempty"`
	Stride   int      `json:"stride,omitempty"`  // 0: 1 for Conv2D, Kernel for MaxPool
	Padding  string   `json:"padding,omitempty"` // "": Valid
	Pad      int      `json:"pad,omitempty"`     // zeros on each side, in place of Padding
	NoBias   bool     `json:"no_bias,omitempty"` // of Dense and Conv2D
	Rate     float32  `json:"rate,omitempty"`
	Momentum float32  `json:"momentum,omitempty"` // of BatchNorm's running moments; 0: 0.9
	Epsilon  float32  `json:"epsilon,omitempty"`  // of BatchNorm and LayerNorm; 0: 1e-3
}

// Source is the name of the model's input among the Inputs of a layer.
const Source = "input"

// Model is a network as plain data, a graph without cycles: each layer reads earlier
// ones. Two models with equal JSON compute the same. The last layer must give Classes
// logits per record, and every other layer is an input of a later one.
type Model struct {
	Name    string   `json:"name"`
	Input   Features `json:"input"`
	Classes int      `json:"classes"`
	Layers  []Layer  `json:"layers"`
	Loss    string   `json:"loss"`
	Metrics []string `json:"metrics"`
}

// Step is the distance between a layer's windows, with its default filled in.
func (l Layer) Step() int {
	if l.Stride != 0 {
		return l.Stride
	}
	if l.Op == MaxPool || l.Op == AvgPool {
		return l.Kernel
	}
	return 1
}

// RunningMomentum is Momentum with its default filled in.
func (l Layer) RunningMomentum() float32 {
	if l.Momentum != 0 {
		return l.Momentum
	}
	return 0.9
}

// Eps is Epsilon with its default filled in.
func (l Layer) Eps() float32 {
	if l.Epsilon != 0 {
		return l.Epsilon
	}
	return 1e-3
}

// WindowPadding says how many zeros lie before the input along one dimension
// of the given length, and how many windows fit (0 if none does).
func (l Layer) WindowPadding(length int) (before, windows int) {
	s := l.Step()
	if l.Pad > 0 {
		if length+2*l.Pad < l.Kernel {
			return 0, 0
		}
		return l.Pad, (length+2*l.Pad-l.Kernel)/s + 1
	}
	if l.Padding == Same {
		windows = (length + s - 1) / s
		return max((windows-1)*s+l.Kernel-length, 0) / 2, windows
	}
	if length < l.Kernel {
		return 0, 0
	}
	return 0, (length-l.Kernel)/s + 1
}
