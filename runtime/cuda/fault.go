package cuda

// Kind is the part that XLA lacks.
type Kind string

// The kinds, as Problem reports them, one after the other.
const (
	NoGPU       Kind = "no GPU"
	NoDriver    Kind = "no driver"
	OldDriver   Kind = "old driver"
	NoPlugin    Kind = "no plugin"
	NoLibrary   Kind = "no library"
	NoPtxas     Kind = "no ptxas"
	NoLibdevice Kind = "no libdevice"
	BadPlugin   Kind = "bad plugin" // it cannot be driven
	BadGPU      Kind = "bad GPU"    // it computes wrong numbers, or a client does not start
)

// Fault is the reason why XLA cannot use a GPU, for people.
type Fault struct {
	Kind    Kind
	Summary string // at most eight words
	Advice  string // sentences: the observed facts, then the remedy
	Cause   error  // or nil
}

func (f *Fault) Error() string {
	text := f.Summary + ". " + f.Advice
	if f.Cause != nil {
		text += " The cause: " + f.Cause.Error()
	}
	return text
}

// OfGPU reports whether the fault is of the GPU itself, and not of the machine's software.
func (f *Fault) OfGPU() bool { return f.Kind == BadGPU }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }
