package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
)

// trainerName is the name of the trainer that has the engine of GPUs.
const trainerName = "stoke-trainer-gpu"

// measureLimit is how long the measurement of one GPU may take: XLA starts in a few
// seconds, in a cold cache in ten.
const measureLimit = time.Minute

// exitUsage is the exit status of a trainer that does not have the command.
const exitUsage = 64

// TrainerPath returns the path of stoke-trainer-gpu next to this program; "": there is
// none.
func TrainerPath() string { return besideThis(trainerName) }

// Measure has the trainer at a path measure one GPU, by UUID or index. A trainer that
// ends with an error, prints garbage, or takes longer than a minute is a failure of the
// GPU.
func Measure(ctx context.Context, path, gpuName string) gpu.Measured {
	return measureWithin(ctx, measureLimit, path, gpuName)
}

func measureWithin(ctx context.Context, limit time.Duration, path, gpuName string) gpu.Measured {
	text, err := output(ctx, limit, path, []string{"measure-gpu", gpuName})
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return gpu.Unmeasured(false, "it was interrupted")
	case errors.As(err, &exit) && exit.ExitCode() == exitUsage:
		return gpu.Unmeasured(false, fmt.Sprintf("%s is too old: it has no command measure-gpu", path))
	case err != nil:
		return gpu.Unmeasured(!errors.As(err, new(*exec.Error)), err.Error())
	}
	var m gpu.Measured
	if err := json.Unmarshal(text, &m); err != nil || m.Validate() != nil {
		return gpu.Unmeasured(true, trainerName+" did not print a measurement")
	}
	return m
}
