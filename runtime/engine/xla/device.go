package xla

import "github.com/stokehq/stoke/runtime/stablehlo"

// Device compiles and runs programs. Any goroutine may use it.
type Device interface {
	// Compile makes a program of StableHLO text. Flags are XLA's debug options.
	Compile(text string, flags map[string]any) (Program, error)
	// Upload begins to copy data, dense and row-major, to the device. done is called once,
	// when the data may be changed: by any goroutine, perhaps before Upload returns, and
	// after an error too.
	Upload(t stablehlo.Type, dims []int, data []byte, done func()) (Buffer, error)
	// Host returns memory of the host, pinned where that makes copies faster. It lasts as
	// long as the device.
	Host(bytes int) ([]byte, error)
	// Class names what the last bits of results depend on: the model of the GPU and the
	// versions of what computes.
	Class() string
	// Memory returns how many bytes of the device are in use, and the limit.
	Memory() (used, limit int64, err error)
	// Close waits for copies and closes the programs. Replicas are closed before.
	Close() error
}

// Program is a compiled program.
type Program interface {
	// Run begins a run and returns its results at once: they may be arguments of later
	// runs. It closes the arguments that the program donates, except where it returns an
	// error. Errors of the device, such as too little memory, come with a later wait for a
	// result.
	Run(arguments ...Buffer) ([]Buffer, error)
	// Memory returns the bytes of the device that a run needs in addition to its arguments.
	Memory() (int64, error)
}

// Buffer is a tensor on the device.
type Buffer interface {
	// Wait waits for the tensor and returns the error of what computes it.
	Wait() error
	// Download waits for the tensor and copies it, dense and row-major.
	Download(data []byte) error
	Close() error
}
