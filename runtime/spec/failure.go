package spec

// Fault is the kind of an error of a worker.
type Fault string

const (
	// FaultData: records cannot be read here and now. Another machine, or a later
	// time, may read them.
	FaultData Fault = "data"
	// FaultChecksum: the data on this machine differ from the planned ones.
	FaultChecksum Fault = "checksum"
	// FaultEngine: the engine returned an error for these records, or crashed.
	FaultEngine Fault = "engine"
	// FaultGPU: the GPUs of this machine are unfit, and gpu_health is required. Another
	// machine may have others.
	FaultGPU Fault = "gpu"
	// FaultProgram: this build of stoke-trainer lacks what the specification needs.
	FaultProgram Fault = "program"
)

// Reason names the evidence that a failed run would fail again on another
// machine. Any other error stops a run, which a later apply resumes.
type Reason string

const (
	ReasonRejected Reason = "rejected"
	ReasonDiverged Reason = "diverged"
	ReasonEngine   Reason = "engine"
	ReasonChecksum Reason = "checksum"
	ReasonProgram  Reason = "program"
)

// ReasonRow is one line of the table of reasons.
type ReasonRow struct {
	Reason
	Meaning  string
	Evidence string // what proves that the run would fail again
	Test     string // PACKAGE.NAME of the test that shows it
}

// Reasons is the table of all reasons for the phase Failed.
var Reasons = []ReasonRow{
	{ReasonRejected, "this version of stoke-trainer cannot train the specification",
		"the coordinator cannot build the model, or no worker has its engine, before the first update",
		"cmd/stoke-trainer.TestRunsThatCannotBegin"},
	{ReasonDiverged, "the loss or the gradients are not finite",
		"5 updates in a row were skipped for it", "runtime/coordinator.TestNonFiniteUpdatesAreSkipped"},
	{ReasonEngine, "the engine fails on certain records",
		"the engines of two processes returned an error for the same lease, or crashed", "runtime/coordinator.TestFailedOnlyByEvidence"},
	{ReasonChecksum, "the data differ from the specification's",
		"two machines, or two copies of the data, found a wrong checksum", "runtime/coordinator.TestFailedOnlyByEvidence"},
	{ReasonProgram, "the user's program ends with an error of its own",
		"it did so once more than max_restarts allows", "runtime/rendezvous.TestFailedAfterRestarts"},
}
