package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/run"
)

// Export lets the trainer write the model of the run. A run in pods has it on this
// machine once it was collected.
func (r experimentRun) Export(ctx context.Context, o providers.RunExport) (m providers.RunModel, err error) {
	at := r.where()
	if at.Logs == "" {
		return m, &providers.RunError{Summary: "There is no model yet", Detail: "The run is being launched."}
	}
	folder := run.Folder(filepath.Dir(at.Logs))
	finals, err := folder.Finals()
	if err != nil {
		return m, err
	}
	if of, err := r.Spec(ctx, r.id); err == nil && of.HasProgram() {
		return m, &providers.RunError{Summary: "A program has no model to export",
			Detail: "The checkpoints of a program have a format of its own. Let the program write the model."}
	}
	if inPods := at.Run != string(folder); inPods && len(finals) == 0 {
		return m, &providers.RunError{Summary: "The model is in the run's pods",
			Detail: "stoke fetches it to this machine once the run has succeeded. Run \"stoke apply\" then, and export again."}
	}
	t, err := r.trainer(ctx)
	if err != nil {
		return m, &providers.RunError{Summary: "There is no stoke-trainer",
			Detail: fmt.Sprintf("It writes the model. Install it next to stoke or in $PATH: %s.", err), Err: err}
	}
	args := []string{"model", "export", "--run", string(folder), "--out", o.Path, "--step", strconv.FormatInt(o.Step, 10)}
	if o.Replace {
		args = append(args, "--force")
	}
	out, err := t.run(ctx, nil, args...)
	var told api.Failure
	switch {
	case errors.As(err, &told):
		return m, &providers.RunError{Summary: told.Summary, Detail: sentence(told.Detail), Err: err}
	case err != nil:
		return m, fmt.Errorf("export the model: %w", err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("export the model: read the trainer's answer: %w", err)
	}
	return m, nil
}
