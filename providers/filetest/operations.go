package filetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
)

// Create makes the file and marks it with the operation.
func (fileResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m fileModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	call := providers.CallFrom(ctx)
	o := m.object(&resp.Diagnostics)
	if o.mark = call.Operation; o.mark == "" {
		o.mark = unmarked
	}
	if resp.Diagnostics.HasError() || !work(ctx, m, "making the file", &resp.Diagnostics) {
		return
	}
	if m.Fail.ValueString() == failCreate {
		resp.Diagnostics.AddError("Create failed as asked", `Nothing was made, as the argument fail is "create".`)
		return
	}
	if m.Fail.ValueString() == failPanic {
		panic(fmt.Sprintf("asked to panic instead of writing %q", m.Content.ValueString()))
	}
	partial := m.Fail.ValueString() == failCreatePartial
	if partial {
		o.content = o.content[:len(o.content)/2]
	}
	if err := o.create(); err != nil {
		addCreateError(&resp.Diagnostics, m, call.Address, err)
		there, err := load(o.path)
		if err != nil || there.mark != o.mark || o.mark == unmarked {
			return
		}
		o, partial = there, false // made, but not logged: it is the object all the same
	}
	m.setComputed(o)
	if partial {
		m.setContent(o)
		if m.Keep.ValueBool() {
			call.KeepOnError()
		}
		resp.Diagnostics.AddError("Create failed half-way as asked",
			fmt.Sprintf("%s holds half of its content, as the argument fail is %q.", o.path, failCreatePartial))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// addCreateError says why a file was not made, in the words of the
// configuration.
func addCreateError(diags *diag.Diagnostics, m fileModel, address string, err error) {
	if !errors.Is(err, errExists) {
		diags.AddError("File not made", err.Error()+".")
		return
	}
	if address == "" {
		address = "test_file.NAME"
	}
	id := m.Directory.ValueString() + "/" + m.Name.ValueString()
	diags.AddError("File already exists", fmt.Sprintf(`%s is there, and this object did not make it. Remove the file, or give %s another name.`, id, address))
}

// Read looks at the file. While settling, only a file that carries the
// operation's mark is the object's.
func (fileResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m fileModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	call := providers.CallFrom(ctx)
	want := m.object(&resp.Diagnostics)
	if call.Settling {
		want.mark = call.Operation
		if err := want.discardTemporary(); err != nil {
			resp.Diagnostics.AddWarning("Temporary file left behind", err.Error()+".")
		}
	} else if m.Fail.ValueString() == failRead {
		resp.Diagnostics.AddError("Read failed as asked", `The argument fail is "read". Change it with -refresh=false.`)
		return
	}
	there, err := load(want.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !call.Settling && want.mark != "" {
			err = want.settleLog("delete")
		} else {
			err = nil
		}
		resp.State.RemoveResource(ctx)
	case err != nil:
	case call.Settling && (call.Operation == "" || there.mark != call.Operation):
		resp.State.RemoveResource(ctx)
	case want.mark != "" && there.mark != want.mark:
		resp.Diagnostics.AddWarning("Another file took its place",
			fmt.Sprintf("%s carries the mark %q and not %q, so the object counts as gone.", want.path, there.mark, want.mark))
		resp.State.RemoveResource(ctx)
	default:
		if call.Settling {
			err = there.settleLog("create")
		}
		m.setComputed(there)
		m.setContent(there)
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
	if err != nil {
		resp.Diagnostics.AddError("File not read", err.Error()+".")
	}
}

// Update writes the content anew, under the same mark.
func (fileResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m fileModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	o := m.object(&resp.Diagnostics)
	if resp.Diagnostics.HasError() || !work(ctx, m, "writing the file", &resp.Diagnostics) {
		return
	}
	if m.Fail.ValueString() == failUpdate {
		resp.Diagnostics.AddError("Update failed as asked", `Nothing was changed, as the argument fail is "update".`)
		return
	}
	before := o
	var mark types.String // an imported file has none before its first update
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("mark"), &mark)...)
	before.mark = mark.ValueString()
	if !ours(before, &resp.Diagnostics) {
		return
	}
	if err := o.update(); err != nil {
		resp.Diagnostics.AddError("File not written", err.Error()+".")
		return
	}
	m.setComputed(o)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// Delete removes the file, if it is still ours.
func (fileResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m fileModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	o := m.object(&resp.Diagnostics)
	if resp.Diagnostics.HasError() || !work(ctx, m, "removing the file", &resp.Diagnostics) {
		return
	}
	if m.Fail.ValueString() == failDelete {
		resp.Diagnostics.AddError("Delete failed as asked", `The file is still there, as the argument fail is "delete".`)
		return
	}
	there, err := load(o.path)
	if err == nil && there.mark != o.mark {
		resp.Diagnostics.AddWarning("Another file took its place",
			fmt.Sprintf("%s carries the mark %q and not %q, so it was not changed.", o.path, there.mark, o.mark))
		return
	}
	if err := o.delete(); err != nil {
		resp.Diagnostics.AddError("File not removed", err.Error()+".")
	}
}

// ours reports whether the file is still the one that the object made.
func ours(o object, diags *diag.Diagnostics) bool {
	there, err := load(o.path)
	switch {
	case err != nil:
		diags.AddError("File is gone", err.Error()+". Plan again to recreate it.")
	case there.mark != o.mark:
		diags.AddError("Another file took its place",
			fmt.Sprintf("%s carries the mark %q and not %q. Plan again.", o.path, there.mark, o.mark))
	default:
		return true
	}
	return false
}

// work takes as long as the argument delay says. It is work, so the first
// Ctrl-C doesn't end it; a cancelled context does, before anything was done,
// and work returns false.
func work(ctx context.Context, m fileModel, step string, diags *diag.Diagnostics) bool {
	delay, err := time.ParseDuration(m.Delay.ValueString())
	if err != nil || delay <= 0 {
		return ctx.Err() == nil || interrupted(diags)
	}
	call := providers.CallFrom(ctx)
	const ticks = 10
	ticker := time.NewTicker(max(delay/ticks, time.Millisecond))
	defer ticker.Stop()
	end := time.Now().Add(delay)
	for {
		left := time.Until(end)
		if left <= 0 {
			return true
		}
		call.Report(providers.Progress{Step: step, Percent: 100 * (1 - float64(left)/float64(delay))})
		select {
		case <-ctx.Done():
			return interrupted(diags)
		case <-ticker.C:
		}
	}
}

func interrupted(diags *diag.Diagnostics) bool {
	diags.AddError("Interrupted", "The call was stopped before it did anything.")
	return false
}
