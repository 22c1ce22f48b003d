// Package safetensors reads and writes files of named tensors in the format
// safetensors: the header's length (8 bytes, little-endian), a JSON object with
// each tensor's type, shape and place, then the bytes of the tensors without holes
// between them. Its memory does not grow with the size of the tensors.
//
// It knows nothing about models. A reader accepts any type of the format, and
// returns the values of floating-point types as float32; a writer has float32 only.
//
// Entry points: Open, NewWriter.
package safetensors
