package gpu

// XID is a class of error reports of the driver.
type XID struct {
	Number   uint64
	Severity Severity
	About    string
}

// XIDs returns the XIDs that rules are about, with what NVIDIA's XID catalogue
// says of the GPU after them. Others are errors of programs, such as 13, 31, 43 and
// 45, or say that an error was dealt with: they break no rule.
func XIDs() []XID {
	return []XID{
		{46, Unfit, "the GPU stopped processing: it needs a reset"},
		{48, Unfit, "a memory error that ECC could not correct: the GPU needs a reset"},
		{62, Unfit, "an internal processor halted: the GPU needs a reset"},
		{63, Warning, "a row of memory is replaced at the next reset"},
		{64, Unfit, "a row of memory could not be replaced: the GPU needs a reset, perhaps a repair"},
		{74, Unfit, "an error of NVLink: connections to other GPUs may fail"},
		{79, Unfit, "the GPU has fallen off the bus: the machine needs a restart"},
		{92, Warning, "many memory errors that ECC corrected"},
		{94, Warning, "a memory error that ECC could not correct, contained: only the program that used it ended"},
		{95, Unfit, "a memory error that ECC could not correct, not contained: the GPU needs a reset"},
		{109, Warning, "a switch between programs took too long"},
		{110, Unfit, "a security fault: the GPU needs a reset"},
		{119, Unfit, "the GPU's system processor (GSP) does not answer: the GPU needs a reset"},
		{120, Unfit, "the GPU's system processor (GSP) failed: the GPU needs a reset"},
		{136, Unfit, "training of NVLink failed"},
		{140, Unfit, "a memory error that ECC could not correct and the driver could not recover: the GPU needs a reset"},
		{143, Unfit, "the GPU could not be initialised: it needs a reset"},
		{154, Warning, "the driver asks for a recovery of the GPU: nvidia-smi -q shows which"},
	}
}

// classOf returns the class of an XID; false: no rule is about it.
func classOf(number uint64) (XID, bool) {
	for _, x := range XIDs() {
		if x.Number == number {
			return x, true
		}
	}
	return XID{}, false
}
