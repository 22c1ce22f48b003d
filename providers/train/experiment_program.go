package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/program"
	"github.com/stokehq/stoke/runtime/code"
	"github.com/stokehq/stoke/runtime/spec"
)

// hasProgram reports whether the experiment has a block program.
func (m *experimentModel) hasProgram() bool { return !m.Program.IsNull() }

// inProgram is a text of the block; null where it is not known.
func (m *experimentModel) inProgram(name string) types.String {
	v, _ := m.Program.Attributes()[name].(types.String)
	if v.IsUnknown() {
		return types.StringNull()
	}
	return v
}

// program reads the arguments that have no row in arguments: code and on_change.
func (d *draft) program(m *experimentModel) (diags diag.Diagnostics) {
	d.resumes = m.inProgram("on_change").ValueString() == program.Resume
	at := pathOf("program.code")
	given, _ := m.Program.Attributes()["code"].(types.String)
	if m.Program.IsUnknown() || given.IsUnknown() {
		d.unknown["program.code"] = true
	}
	folder, err := localPath(given.ValueString())
	if err != nil {
		diags.AddAttributeError(at, "Path cannot be resolved", err.Error()+".")
	}
	d.code.Folder = folder
	if !m.CodeHash.IsUnknown() {
		d.spec.Program.Code = m.CodeHash.ValueString() // of a plan or a state
	}
	return diags
}

// grace is how long a recorded program may take to end.
func (m *experimentModel) grace() time.Duration {
	grace, err := time.ParseDuration(m.inProgram("stop_grace").ValueString())
	if err != nil {
		return 0 // a built-in model has none
	}
	return grace
}

// fillProgram shows defaults that are not in the table of arguments.
func (m *experimentModel) fillProgram(ctx context.Context) {
	if !m.Program.IsUnknown() && m.Program.Attributes()["on_change"].IsNull() {
		m.Program = withAttribute(ctx, m.Program, "on_change", types.StringValue(program.NewRun))
	}
}

// checkProgram reports arguments that a program, or else a model, does not have.
func (m *experimentModel) checkProgram() (diags diag.Diagnostics) {
	at := path.Root(programBlock)
	switch {
	case !m.hasProgram() && m.Dataset.IsNull():
		diags.AddAttributeError(path.Root("dataset"), "No dataset given",
			"Declare a train_dataset and give its uri: built-in models need one.")
		return diags
	case !m.hasProgram():
		return nil
	}
	if v := m.inProgram("on_change"); !v.IsNull() && v.ValueString() != program.NewRun && v.ValueString() != program.Resume {
		diags.AddAttributeError(at.AtName("on_change"), "Unknown value",
			fmt.Sprintf("on_change must be one of %s, %s; it is %q.", program.NewRun, program.Resume, v.ValueString()))
	}
	return append(diags, m.checkModelArguments()...)
}

// checkModelArguments reports the arguments of built-in models in an experiment with a
// program.
func (m *experimentModel) checkModelArguments() (diags diag.Diagnostics) {
	const summary = "Only built-in models know this"
	if !m.Hyperparameters.IsNull() {
		diags.AddAttributeError(path.Root("hyperparameters"), summary, "Give the program its own values as parameters in program {}.")
	}
	if !m.Evaluation.IsNull() {
		diags.AddAttributeError(path.Root("evaluation"), summary,
			"Remove the block: a program evaluates by itself, and reports the result as metrics.")
	}
	for _, a := range arguments() {
		v := m.value(&a)
		if a.isFor(true) || a.in != "" && a.in != "checkpoint" || v == nil || v.IsNull() || v.IsUnknown() {
			continue
		}
		advice := "Leave it out, or give the program a value of its own as parameters in program {}."
		if a.in == "checkpoint" {
			advice = "Leave it out: a program saves its checkpoints by itself."
		}
		diags.AddAttributeError(a.path(), summary, advice)
	}
	return diags
}

// readCode reads the folder of the program's code once. Code that has another hash
// than the planned one is an error.
func (d *draft) readCode(ctx context.Context) (diags diag.Diagnostics) {
	if d.code.Folder == "" || d.code.Snapshot != nil {
		return nil
	}
	at := pathOf("program.code")
	snapshot, err := code.Read(ctx, d.code.Folder)
	if err != nil {
		detail := capital(err)
		if fault := new(code.Fault); errors.As(err, &fault) && fault.Path != "" {
			detail = "In " + d.code.Folder + ": " + err.Error()
		}
		diags.AddAttributeError(at, "Code cannot be used", detail+".")
		return diags
	}
	if planned := d.spec.Program.Code; planned != "" && planned != snapshot.Hash() {
		diags.AddAttributeError(at, "Code is not the planned one",
			fmt.Sprintf("The files in %s have changed since the plan was made. Plan again.", d.code.Folder))
		return diags
	}
	d.code.Snapshot, d.spec.Program.Code = snapshot, snapshot.Hash()
	return nil
}

// prepare reads the code of a program that is about to start, and checks that this
// machine can start it.
func (d *draft) prepare(ctx context.Context) diag.Diagnostics {
	diags := d.readCode(ctx)
	if d.spec.HasProgram() && !diags.HasError() {
		diags.Append(d.checkCommand()...)
	}
	return diags
}

// checkCommand reports that this machine cannot start the command.
func (d *draft) checkCommand() (diags diag.Diagnostics) {
	if d.inPods { // their image has it
		return nil
	}
	for _, p := range program.CheckCommand(&d.spec, d.code.Folder, d.code.Snapshot, d.unknown) {
		diags.AddAttributeError(pathOf(p.Field), p.Summary, p.Detail)
	}
	return diags
}

// code finds out what the program's code is.
func (p *planning) code(ctx context.Context) {
	p.plan.CodeHash = types.StringUnknown()
	if p.draft.unknown["program.code"] {
		return
	}
	p.resp.Diagnostics.Append(p.draft.readCode(ctx)...)
	p.plan.CodeHash = optionalText(p.draft.spec.Program.Code)
}

// listKey is where private state keeps the list of the code's files.
const listKey = "code"

// list finds out which files of the code have changed.
func (p *planning) list(ctx context.Context, private privateGetter, prior *experimentModel) {
	now := p.draft.code.Snapshot
	if now == nil {
		return
	}
	var before program.List
	if text, diags := private.GetKey(ctx, listKey); !diags.HasError() && text != nil {
		_ = json.Unmarshal(text, &before) // unreadable: a plan names no files
	}
	hash := prior.CodeHash.ValueString()
	switch {
	case hash != now.Hash():
		p.files = before.Changes(hash, now)
	case before.Hash != hash && p.resp.Private != nil: // of a run that was imported
		p.resp.Diagnostics.Append(writeList(ctx, p.resp.Private, now)...)
	}
}

// writeList keeps the list of the code's files; nil is no code.
func writeList(ctx context.Context, private privateSetter, now *code.Snapshot) diag.Diagnostics {
	if now == nil {
		return nil
	}
	text, err := json.Marshal(program.ListOf(now))
	if err != nil {
		return diag.Diagnostics{diag.NewErrorDiagnostic("List of the code is unwritable", err.Error())}
	}
	return private.SetKey(ctx, listKey, text)
}

// noteChange notes what a change costs; of the code also which files have changed.
func (p *planning) noteChange(ctx context.Context, c spec.Change, text string) {
	if c.Field == "program.code" && p.files != "" {
		text += ": " + p.files
	}
	note(ctx, p.resp, pathOf(c.Field), providers.NoteChange, text)
}

// startsOver notes that a program which is stopped may have to begin again.
func (p *planning) startsOver(ctx context.Context, idle bool, left remains) {
	if p.draft.spec.HasProgram() && !idle && left.Saved < 0 {
		note(ctx, p.resp, path.Empty(), providers.NoteDisruption,
			"stops the program, which has saved no complete checkpoint: it starts over, unless it saves one on SIGTERM")
	}
}

// costOf is what a change of the field costs, as on_change says.
func (d *draft) costOf(field string) spec.Cost {
	switch field {
	case "program.command", "program.code", "program.environment", "program.parameters":
		if d.resumes {
			return spec.Resume
		}
	}
	return spec.CostOf(field)
}

// compare returns the changes from a spec to the spec of the draft.
func (d *draft) compare(before spec.Spec) []spec.Change {
	if before.HasProgram() != d.spec.HasProgram() {
		return []spec.Change{{Field: "model", Cost: spec.NewRun, Old: before.Model, New: d.spec.Model}}
	}
	changes := spec.Compare(before, d.spec)
	for i, c := range changes {
		changes[i].Cost = d.costOf(c.Field)
	}
	return changes
}

// optionalText is null for "".
func optionalText(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// isFolder reports whether there is a folder of that name.
func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
