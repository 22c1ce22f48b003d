package model

import "github.com/stokehq/stoke/runtime/spec"

// Op names what a layer computes.
type Op string

// The operations of a Layer. Tensors are records × height × width × channels
// (channels last), records × positions × width for sequences, or records ×
// features behind a Flatten.
const (
	Dense     Op = "dense"           // Units outputs of all inputs, with a bias; of a sequence at each position
	Conv2D    Op = "conv2d"          // Filters maps, Kernel × Kernel, Stride, Padding or Pad, Groups, with a bias
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
	Embedding Op = "embedding"       // for each id of the model's input a row of Units: [positions] gives [positions, Units]
	Position  Op = "position"        // adds a trained value to each element of a sequence (positions × width)
	Attention Op = "attention"       // softmax(Q·Kᵀ/√(width/Heads))·V of its inputs Q, K and V, per head (Vaswani et al. 2017)
	MatMul    Op = "matmul"          // the product of its inputs [m, k] and [k, n], or [n, k] with Transpose
)

// Values of Layer.Padding.
const (
	Valid = "valid" // no padding: the output shrinks
	Same  = "same"  // zeros around, output = input/stride rounded up, as in TensorFlow
)

// Losses of Model.Loss.
const (
	// SoftmaxCrossEntropy is the loss over Classes logits, in nats: the mean over
	// the positions of a record's target. LabelSmoothing changes it in training.
	SoftmaxCrossEntropy = spec.LossSoftmaxCrossEntropy
	// MeanSquaredError is the loss of numbers: the mean over a record's target of
	// the squared errors, as PyTorch's MSELoss.
	MeanSquaredError = spec.LossMeanSquaredError
)

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
	// Groups of Conv2D: filter f of F sees the channels of group f·Groups/F only, as
	// in PyTorch. Groups = channels is a depthwise convolution. 0: 1.
	Groups     int  `json:"groups,omitempty"`
	Vocabulary int  `json:"vocabulary,omitempty"` // of Embedding: ids are 0 … Vocabulary-1
	Heads      int  `json:"heads,omitempty"`      // of Attention: the width is split into so many
	Causal     bool `json:"causal,omitempty"`     // of Attention: a position sees itself and earlier ones
	Transpose  bool `json:"transpose,omitempty"`  // of MatMul: the second input is [n, k]
}

// Source is the name of the model's input among the Inputs of a layer.
const Source = "input"

// Model is a network as plain data, a graph without cycles: each layer reads earlier
// ones. Two models with equal JSON compute the same. Every layer except the last is an
// input of a later one. The last layer must give what Target and Loss ask for: [Classes],
// [positions, Classes] or the numbers.
type Model struct {
	Name    string   `json:"name"`
	Input   Features `json:"input"`
	Classes int      `json:"classes"` // 0 with MeanSquaredError
	Layers  []Layer  `json:"layers"`
	Loss    string   `json:"loss"`
	Metrics []string `json:"metrics"`
	// LabelSmoothing ε of SoftmaxCrossEntropy, from 0 to below 1: the answer is 1-ε of the
	// class and ε/Classes of every class (Szegedy et al. 2016; label_smoothing of PyTorch's
	// CrossEntropyLoss). Only the training loss has it: evaluations report the plain loss.
	LabelSmoothing float32 `json:"label_smoothing,omitempty"`
	// Target is what a record's answer is. Zero: one class as an i32. Shape [positions] of
	// u8 or i32: a class for each position. Shape [numbers] of f32: numbers, with
	// MeanSquaredError. It has no scale.
	Target Features `json:"target,omitzero"`
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

// GroupCount is Groups with its default filled in.
func (l Layer) GroupCount() int { return max(l.Groups, 1) }

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
