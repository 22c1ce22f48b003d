// Package weights has the parameters of trained models by the names of their
// variables, wherever they lie: in a file in the format safetensors, in a checkpoint,
// or in the folder of a finished run. A run begins from them, and Export writes them
// to a file.
//
// It does not have the optimizer's slots, and does not know how models compute.
//
// Entry points: Open, Weights.Fill, Export.
package weights
